#include "siamese/runs/data_key.h"

#include <nlohmann/json.hpp>

#include "siamese/io/checksum.h"
#include "siamese/runs/fields.h"

namespace siamese::runs {
namespace {

using Json = nlohmann::ordered_json;

Json part_json(const DataKey::Part& part) {
  return {{"files", part.files}, {"bytes", part.bytes}, {"hash", io::checksum_text(part.hash)}};
}

DataKey::Part read_part(const Fields& fields) {
  const auto hash = io::checksum_from_text(fields.text("hash"));
  if (!hash) fields.wrong("hash", "16 digits");
  return {fields.count("files"), fields.unsigned_whole("bytes"), *hash};
}

}  // namespace

Json to_json(const DataKey& key) {
  Json object = {{"train", part_json(key.train)}};
  if (key.val.files > 0) object["val"] = part_json(key.val);
  return object;
}

DataKey read_data_key(const Json& object, const std::string& where) {
  const Fields fields(object, where);
  DataKey key{read_part(fields.object("train")), {}};
  if (fields.has("val")) key.val = read_part(fields.object("val"));
  return key;
}

}  // namespace siamese::runs
