// TensorBoard's event files: TFRecords that each hold one Event, a protocol buffer message.
//   record  u64 length, u32 masked CRC-32C of these 8 bytes, the message, u32 masked CRC-32C of it; little-endian
//   masked  (crc rotated right by 15 bits) + 0xa282ead8
//   Event   1: double wall_time (seconds), 2: int64 step, and one of 3: string file_version, 5: Summary,
//           7: SessionLog {1: status, START = 1}
//   Summary 1: Value, once for each number {1: string tag, 2: float simple_value}
// A file is its first record, then any others; a reader drops a torn last one.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace siamese::io {

uint32_t crc32c(std::string_view bytes);

// A message as a record.
std::string tf_record(std::string_view message);

// What a file begins with: its version, and that a session starts, with which a reader that is at work forgets what
// earlier files said of this step and later ones.
std::string first_events(double wall_time, int64_t step);

// The numbers of one step; "" for none. A tag must be valid UTF-8.
std::string scalar_event(double wall_time, int64_t step, const std::vector<std::pair<std::string, double>>& numbers);

}  // namespace siamese::io
