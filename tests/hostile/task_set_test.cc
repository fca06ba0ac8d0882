// Evaluation requests: a line of config.json, then lines of requests.jsonl.
#include "tests/hostile/support.h"

namespace siamese::hostile {
namespace {

const std::string kConfig = R"({"task_name":"cats","task_config":{"primary_metric":"acc_raw"}})";

std::string request(const std::string& id, const std::string& index, const std::string& label) {
  return R"({"request_type":"loglikelihood","doc_id":)" + id + R"(,"idx":)" + index + R"(,"label":)" + label +
         R"(,"request":{"context":"a","continuation":" b"}})" + "\n";
}

TEST(HostileTaskSet, DamagedFiles) {
  expect_holds_when_damaged(fuzz::check_task_set, kConfig + "\n" + request("0", "0", "1") + request("0", "1", "1"));
  expect_holds_when_damaged(fuzz::check_task_set,
                            "\n"
                            R"({"request_type":"generate_until","doc_id":2,"idx":0,"label":["x"],"request":)"
                            R"({"context":"a","stop_sequences":["\n"],"generation_kwargs":{"max_gen_toks":5}}})");
}

TEST(HostileTaskSet, NumbersThatMeanNothing) {
  for (const char* const number : {"-1", "0.5", "1e300", "18446744073709551615", "1125899906842624", "1000000", "null",
                                   "true", "[]", "{}", "\"\"", "\"\\ud800\"", "[null]"}) {
    expect_holds(fuzz::check_task_set, "\n" + request(number, "0", "0"), number);
    expect_holds(fuzz::check_task_set, "\n" + request("0", number, "0"), number);
    expect_holds(fuzz::check_task_set, "\n" + request("0", "0", number), number);
  }
}

TEST(HostileTaskSet, ManyAndDeep) {
  // A million choices that one line claims do not take their room.
  expect_holds(fuzz::check_task_set, "\n" + repeated(request("0", "1048576", "0"), 1000));
  expect_holds(fuzz::check_task_set, "\n" + repeated("[", 100'000));
  expect_holds(fuzz::check_task_set, repeated("[", 100'000) + "\n" + request("0", "0", "0"));
  expect_holds(fuzz::check_task_set, "\n" + repeated("\n", 100'000));
}

}  // namespace
}  // namespace siamese::hostile
