// The end of a journal's line: its number and its checksum, against accidents and not against forgery.
//
//   {"kind":"batch",…,"line":12,"crc":"0123abcd"}
//
// "line" is 1 for the line of a run and else one more than on the line before, so that a line that is missing, stands
// twice or elsewhere shows. "crc" stands last: the CRC-32C of the line's bytes in front of `,"crc":`, in eight
// lower-case hexadecimal digits.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace attest {

/// CRC-32C (Castagnoli; RFC 3720, B.4): polynomial 0x1edc6f41, reflected, begun with ones and inverted at the end. Of
/// "123456789" it is 0xe3069283. It finds every change of up to 3 bits in a line of less than 2^31 bits, every burst
/// of up to 32, and of other changes all but 1 in 2^32.
[[nodiscard]] std::uint32_t crc32c(std::string_view bytes);

enum class Checksum : std::uint8_t { absent, right, wrong };
/// Of a line without its newline. Absent where its last 17 bytes have not the form of one.
[[nodiscard]] Checksum checksum_of(std::string_view line);

/// Numbers lines and gives each its checksum.
class LineStamper {
 public:
  /// The next line follows one of that number; a run's line is number 1 in any case.
  explicit LineStamper(std::int64_t last = 0) : last_(last) {}
  /// `line` is a JSON object without these two members, and its newline.
  [[nodiscard]] std::string stamp(std::string_view line);

 private:
  std::int64_t last_;
};

/// The number of a line that has one; nothing for other lines.
[[nodiscard]] std::optional<std::int64_t> number_of_line(std::string_view line);

/// The text with every line's number and checksum made anew, whatever it had: for tests, fuzz targets and whoever
/// writes journals by other means. What is no JSON object stays as it is.
[[nodiscard]] std::string stamped(std::string_view text);

}  // namespace attest
