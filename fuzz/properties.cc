#include "fuzz/properties.h"

namespace siamese::fuzz {

const std::vector<Property>& properties() {
  static const std::vector<Property> all{{"cifar", check_cifar},
                                         {"completion_request", check_completion_request},
                                         {"compressed", check_compressed},
                                         {"idx", check_idx},
                                         {"jpeg", check_jpeg},
                                         {"json_lines", check_json_lines},
                                         {"llama2c", check_llama2c},
                                         {"megatron_index", check_megatron_index},
                                         {"npy", check_npy},
                                         {"override", check_override},
                                         {"png", check_png},
                                         {"run_records", check_run_records},
                                         {"safetensors", check_safetensors},
                                         {"scheme_text", check_scheme_text},
                                         {"shard_index", check_shard_index},
                                         {"task_set", check_task_set},
                                         {"token_file", check_token_file},
                                         {"tokenizer_file", check_tokenizer_file},
                                         {"tokenizer_text", check_tokenizer_text},
                                         {"yaml", check_yaml}};
  return all;
}

}  // namespace siamese::fuzz
