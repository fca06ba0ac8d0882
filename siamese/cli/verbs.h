// Each verb adds itself to the application; what it does runs while the arguments are parsed, errors are thrown.
#pragma once

#include <CLI/App.hpp>

namespace siamese::cli {

void add_train(CLI::App& app, int& exit_code);
void add_resume(CLI::App& app, int& exit_code);
void add_eval(CLI::App& app, int& exit_code);
void add_analyze(CLI::App& app);
void add_generate(CLI::App& app);
void add_sample(CLI::App& app);
void add_upcycle(CLI::App& app);
void add_convert(CLI::App& app);
void add_sweep(CLI::App& app, int& exit_code);
void add_report(CLI::App& app);
void add_bench(CLI::App& app);
void add_config(CLI::App& app);
void add_plan(CLI::App& app);
void add_schemes(CLI::App& app);
void add_probe(CLI::App& app);
void add_inspect(CLI::App& app);
void add_tokenizer(CLI::App& app);
void add_prepare(CLI::App& app, int& exit_code);
void add_serve(CLI::App& app);
void add_watch(CLI::App& app);

}  // namespace siamese::cli
