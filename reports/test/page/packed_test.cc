#include "reports/page/packed.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <boost/archive/iterators/binary_from_base64.hpp>
#include <boost/archive/iterators/transform_width.hpp>
#include <random>
#include <string>

namespace attest {
namespace {

/// What a browser makes of the element, by zlib's own reader of gzip.
std::string unpacked(const std::string& html) {
  const std::string_view start = "class=\"packed\">";
  const std::size_t begin = html.find(start) + start.size();
  std::string digits = html.substr(begin, html.find('<', begin) - begin);
  while (digits.ends_with('=')) digits.pop_back();
  using namespace boost::archive::iterators;
  using Bytes = transform_width<binary_from_base64<std::string::const_iterator>, 8, 6>;
  std::string bytes(digits.size() * 3 / 4, '\0');
  Bytes byte(digits.begin());
  for (char& one : bytes) one = static_cast<char>(*byte++);
  z_stream stream{};
  EXPECT_EQ(inflateInit2(&stream, 15 + 16), Z_OK);
  std::string text(1U << 20U, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(bytes.data());
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(text.data());
  stream.avail_out = static_cast<uInt>(text.size());
  EXPECT_EQ(inflate(&stream, Z_FINISH), Z_STREAM_END);
  EXPECT_EQ(stream.avail_in, 0U);
  text.resize(stream.total_out);
  inflateEnd(&stream);
  return text;
}

TEST(Packed, IsUnpackedToTheSameAndShort) {
  for (const std::size_t rows : {40U, 41U, 42U, 5000U}) {
    std::string html = "<table>";
    for (std::size_t i = 0; i < rows; ++i) html += "<tr><td class=\"number\">" + std::to_string(i * i) + "</td></tr>";
    const std::string after = packed(html);
    EXPECT_LT(after.size(), html.size());
    // Nothing of it is markup.
    EXPECT_EQ(after.find("<table>"), std::string::npos);
    EXPECT_EQ(unpacked(after), html);
  }
}

TEST(Packed, StaysWhereItWouldNotBeHalfAsLong) {
  EXPECT_EQ(packed(""), "");
  EXPECT_EQ(packed("<p>short</p>"), "<p>short</p>");
  std::string noise;
  std::mt19937 random(1);
  for (int i = 0; i < 100'000; ++i) noise += static_cast<char>('0' + random() % 64);
  EXPECT_EQ(packed(noise), noise);
}

TEST(Packed, WritesBase64AsItsStandardDoes) {
  // The examples of RFC 4648, section 10.
  EXPECT_EQ(base64_of(""), "");
  EXPECT_EQ(base64_of("f"), "Zg==");
  EXPECT_EQ(base64_of("fo"), "Zm8=");
  EXPECT_EQ(base64_of("foo"), "Zm9v");
  EXPECT_EQ(base64_of("foobar"), "Zm9vYmFy");
}

}  // namespace
}  // namespace attest
