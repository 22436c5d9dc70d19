// The container: what is written byte by byte, what is refused and in which words, and that no mutation of a file does
// anything but one of the two.
#include "core/value/safetensors.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "core/support/errors.h"
#include "core/test/refusal.h"

namespace attest {
namespace {

/// A file from its parts, the length as it is.
std::string file(std::string_view header, std::string_view data = {}) {
  const std::uint64_t length = header.size();
  std::string bytes(sizeof(length), '\0');
  std::memcpy(bytes.data(), &length, sizeof(length));
  return bytes.append(header).append(data);
}

std::string with_length(std::uint64_t length, std::string_view rest) {
  std::string bytes(sizeof(length), '\0');
  std::memcpy(bytes.data(), &length, sizeof(length));
  return bytes.append(rest);
}

/// The line of the error, without its source; empty when there is none.
std::string fault_of(std::string_view bytes) {
  const std::string line = refusal([&] { return read_safetensors(bytes, "mine"); });
  if (line.empty()) return line;
  EXPECT_EQ(line.substr(0, 6), "mine: ");
  return line.substr(6);
}

bool same(const TensorFile& a, const TensorFile& b) {
  return a.tensors == b.tensors && a.metadata == b.metadata;
}

TensorFile sample() {
  TensorFile f;
  f.metadata = {{"attest", "1"}, {"ünï", "ge\"s\\chichte\n"}, {"", ""}};
  f.tensors.emplace_back("q", Tensor(DType::f32, {1, 2}, std::vector<double>{1.5, -2}));
  f.tensors.emplace_back("empty", Tensor(DType::f64, {3, 0, 2}));
  f.tensors.emplace_back("flags", Tensor(DType::boolean, {3}, std::vector<double>{1, 0, 1}));
  f.tensors.emplace_back("scalar", Tensor(DType::bf16, Shape(), std::vector<double>{3}));
  f.tensors.emplace_back("a", Tensor(DType::f8_e4m3, {1, 1, 1, 2}, std::vector<double>{448, -0.0}));
  return f;
}

TEST(WriteSafetensors, WritesTheseBytes) {
  TensorFile f;
  f.metadata = {{"op", "x"}};
  f.tensors.emplace_back("q", Tensor(DType::f16, {1, 2}, std::vector<double>{1, -2}));
  const std::string header = R"({"__metadata__":{"op":"x"},"q":{"dtype":"F16","shape":[1,2],"data_offsets":[0,4]}})";
  const std::string padded = header + std::string((8 - header.size() % 8) % 8, ' ');
  EXPECT_EQ(padded.size() % 8, 0U);
  EXPECT_EQ(write_safetensors(f), file(padded, std::string("\x00\x3c\x00\xc0", 4)));
  EXPECT_EQ(write_safetensors(TensorFile()), file("{}      "));
}

TEST(WriteSafetensors, ReplacesWhatIsNotUtf8) {
  TensorFile f;
  f.metadata = {{"kernel", "a\xff"}};
  EXPECT_EQ(read_safetensors(write_safetensors(f), "mine").metadata.at("kernel"), "a\xef\xbf\xbd");
}

TEST(ReadSafetensors, GivesBackWhatWasWritten) {
  EXPECT_TRUE(same(read_safetensors(write_safetensors(sample()), "mine"), sample()));
  EXPECT_TRUE(same(read_safetensors(file("{}"), "mine"), TensorFile()));
}

TEST(ReadSafetensors, TakesTheOrderOfTheData) {
  const TensorFile f = read_safetensors(
      file(
          R"({"b":{"dtype":"BOOL","shape":[1],"data_offsets":[1,2]},"a":{"data_offsets":[0,1],"shape":[1],"dtype":"BOOL"}})",
          std::string("\0\1", 2)),
      "mine");
  ASSERT_EQ(f.tensors.size(), 2U);
  EXPECT_EQ(f.tensors[0].first, "a");
  EXPECT_EQ(f.tensors[0].second[0], 0.0);
  EXPECT_EQ(f.tensors[1].first, "b");
  EXPECT_EQ(f.tensors[1].second[0], 1.0);
}

TEST(ReadSafetensors, RefusesHostileFiles) {
  const auto x = [](std::string_view entry, std::string_view data = {}) {
    return file("{\"x\":{" + std::string(entry) + "}}", data);
  };
  struct Hostile {
    std::string bytes, line;
  };
  const std::string eight(8, 'd');
  const std::vector<Hostile> corpus{
      // Lengths.
      {"", "0 bytes are too few for a safetensors file"},
      {"1234567", "7 bytes are too few for a safetensors file"},
      {with_length(0, ""), "the header does not begin with '{'"},
      {with_length(3, "{}"), "header length 3 is more than the 2 bytes that follow"},
      {with_length(~std::uint64_t{0}, "{}"),
       "header length 18446744073709551615 is more than 100000000; is it a safetensors file?"},
      {with_length(100'000'001, "{}"), "header length 100000001 is more than 100000000; is it a safetensors file?"},
      {"Loading model weights...",
       "header length 2334956330749620044 is more than 100000000; is it a safetensors file?"},
      // JSON.
      {file(" {}"), "the header does not begin with '{'"},
      {file("\xef\xbb\xbf{}"), "the header does not begin with '{'"},
      {file("[]"), "the header does not begin with '{'"},
      {file("{"), "the header is not JSON in UTF-8: wrong at its byte 2"},
      {file("{}x"), "the header is not JSON in UTF-8: wrong at its byte 3"},
      {file("{}{}"), "the header is not JSON in UTF-8: wrong at its byte 3"},
      {file(std::string_view("{}\0\0", 4)), "the header is not JSON in UTF-8: wrong at its byte 3"},
      {file("{/**/}"), "the header is not JSON in UTF-8: wrong at its byte 2"},
      {file("{\"\xff\":1}"), "the header is not JSON in UTF-8: wrong at its byte 3"},
      {file("{\"\xc0\xaf\":1}"), "the header is not JSON in UTF-8: wrong at its byte 3"},
      {file("{\"\xed\xa0\x80\":1}"), "the header is not JSON in UTF-8: wrong at its byte 4"},
      {file("{\"\\ud800\":1}"), "the header is not JSON in UTF-8: wrong at its byte 9"},
      {file("{\"x\":1e999}"), "the header is not JSON in UTF-8: wrong at its byte 10"},
      {file("{\"x\":" + std::string(1'000'000, '[')), "\"x\" is an array; it must be an object"},
      {file("{\"x\":{\"shape\":" + std::string(1'000'000, '[')),
       "tensor \"x\": \"shape\" holds an array; it must hold whole numbers from 0 to 2^64 - 1"},
      // The header's form.
      {file(R"({"x":1})"), "\"x\" is 1; it must be an object"},
      {file(R"({"x":null})"), "\"x\" is null; it must be an object"},
      {file(R"({"x":"y"})"), "\"x\" is the string \"y\"; it must be an object"},
      {file(R"({"__metadata__":[]})"), "\"__metadata__\" is an array; it must be an object"},
      {file(R"({"__metadata__":{"a":1}})"), "metadata \"a\" is 1; it must be a string"},
      {file(R"({"__metadata__":{"a":true}})"), "metadata \"a\" is a boolean; it must be a string"},
      {file(R"({"__metadata__":{"a":{}}})"), "metadata \"a\" is an object; it must be a string"},
      {file(R"({"__metadata__":{"a":"1","a":"1"}})"), "the header has \"a\" twice"},
      {file(R"({"__metadata__":{},"__metadata__":{}})"), "the header has \"__metadata__\" twice"},
      {x(""), "tensor \"x\" has no \"dtype\""},
      {x(R"("dtype":"F32","shape":[])"), "tensor \"x\" has no \"data_offsets\""},
      {x(R"("dtype":"F32","data_offsets":[0,4])", "dddd"), "tensor \"x\" has no \"shape\""},
      {x(R"("dtype":"F32","shape":[2],"data_offsets":[0,8],"extra":1)", eight),
       "tensor \"x\": unknown key \"extra\"; known: \"dtype\", \"shape\", \"data_offsets\""},
      {x(R"("dtype":"F32","dtype":"F32","shape":[2],"data_offsets":[0,8])", eight), "the header has \"dtype\" twice"},
      {x(R"("dtype":"I16","shape":[4],"data_offsets":[0,8])", eight),
       "tensor \"x\": dtype \"I16\" is unknown; did you mean \"F16\"?"},
      {x(R"("dtype":"f32","shape":[2],"data_offsets":[0,8])", eight),
       "tensor \"x\": dtype \"f32\" is unknown; did you mean \"F32\"?"},
      {x(R"("dtype":3,"shape":[2],"data_offsets":[0,8])", eight), "tensor \"x\": \"dtype\" is 3; it must be a string"},
      {x(R"("dtype":"F32","shape":2,"data_offsets":[0,8])", eight),
       "tensor \"x\": \"shape\" is 2; it must be an array of at most 4 whole numbers"},
      {x(R"("dtype":"F32","shape":[2.0],"data_offsets":[0,8])", eight),
       "tensor \"x\": \"shape\" holds 2.0; it must hold whole numbers from 0 to 2^64 - 1"},
      {x(R"("dtype":"F32","shape":[-2],"data_offsets":[0,8])", eight),
       "tensor \"x\": \"shape\" holds -2; it must hold whole numbers from 0 to 2^64 - 1"},
      {x(R"("dtype":"F32","shape":["2"],"data_offsets":[0,8])", eight),
       "tensor \"x\": \"shape\" holds the string \"2\"; it must hold whole numbers from 0 to 2^64 - 1"},
      {x(R"("dtype":"F32","shape":[2,1,1,1,1],"data_offsets":[0,8])", eight), "tensor \"x\": more than 4 axes"},
      {x(R"("dtype":"F32","shape":[2],"data_offsets":[0])", eight),
       "tensor \"x\": \"data_offsets\" has 1 numbers; it must have 2"},
      {x(R"("dtype":"F32","shape":[2],"data_offsets":[0,8,8])", eight),
       "tensor \"x\": \"data_offsets\" has more than 2 numbers"},
      {x(R"("dtype":"F32","shape":[2],"data_offsets":[-0,8])", eight),
       "tensor \"x\": \"data_offsets\" holds 0; it must hold whole numbers from 0 to 2^64 - 1"},
      // Sizes and ranges.
      {x(R"("dtype":"F32","shape":[9223372036854775808],"data_offsets":[0,8])", eight),
       "tensor \"x\": an extent of 9223372036854775808 is too large"},
      {x(R"("dtype":"F32","shape":[99999999999999999999999],"data_offsets":[0,8])", eight),
       "tensor \"x\": \"shape\" holds 99999999999999999999999; it must hold whole numbers from 0 to 2^64 - 1"},
      {x(R"("dtype":"F32","shape":[4294967296,4294967296,2],"data_offsets":[0,8])", eight),
       "tensor \"x\": the product of its shape overflows"},
      {x(R"("dtype":"F64","shape":[2305843009213693953],"data_offsets":[0,8])", eight),
       "tensor \"x\": the product of its shape overflows"},
      {x(R"("dtype":"F32","shape":[0,9223372036854775807,3],"data_offsets":[0,0])"),
       "tensor \"x\": the product of its shape overflows"},
      {x(R"("dtype":"F32","shape":[3],"data_offsets":[0,8])", eight),
       "tensor \"x\": shape and dtype make 12 bytes; its range has 8"},
      {x(R"("dtype":"F32","shape":[],"data_offsets":[0,8])", eight),
       "tensor \"x\": shape and dtype make 4 bytes; its range has 8"},
      {x(R"("dtype":"F32","shape":[2],"data_offsets":[8,0])", eight),
       "tensor \"x\": bytes 8 to 0 are not within the 8 bytes of data"},
      {x(R"("dtype":"F32","shape":[2],"data_offsets":[0,8])", "ddddddd"),
       "tensor \"x\": bytes 0 to 8 are not within the 7 bytes of data"},
      {x(R"("dtype":"F32","shape":[2],"data_offsets":[18446744073709551608,18446744073709551615])", eight),
       "tensor \"x\": bytes 18446744073709551608 to 18446744073709551615 are not within the 8 bytes of data"},
      {x(R"("dtype":"F32","shape":[2],"data_offsets":[0,8])", eight + "d"), "1 bytes follow the last tensor; none may"},
      {file("{}", "d"), "1 bytes follow the last tensor; none may"},
      {x(R"("dtype":"F32","shape":[1],"data_offsets":[4,8])", eight),
       "tensor \"x\": begins at byte 4; it must begin at 0, where the one before it ends"},
      {file(
           R"({"x":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"y":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
           eight),
       "tensor \"y\": begins at byte 0; it must begin at 4, where the one before it ends"},
      {file(
           R"({"x":{"dtype":"BOOL","shape":[5],"data_offsets":[0,5]},"y":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
           eight),
       "tensor \"y\": begins at byte 4; it must begin at 5, where the one before it ends"},
      {file(
           R"({"x":{"dtype":"BOOL","shape":[3],"data_offsets":[0,3]},"y":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
           eight),
       "tensor \"y\": begins at byte 4; it must begin at 3, where the one before it ends"},
      {file(
           R"({"x":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"x":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
           eight),
       "the header has \"x\" twice"},
      {file(
           R"({"x":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"\u0078":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
           eight),
       "the header has \"x\" twice"},
  };
  for (const Hostile& hostile : corpus)
    EXPECT_EQ(fault_of(hostile.bytes), hostile.line) << hostile.bytes.substr(0, 200);
}

/// A mutation either is refused in one line or is another file, which is then written and read back as itself.
void expect_refused_or_valid(const std::string& bytes, int& refused, int& valid) {
  TensorFile f;
  try {
    f = read_safetensors(bytes, "mine");
  } catch (const UsageError&) {
    ++refused;
    return;
  }
  ++valid;
  std::size_t data = 0;
  for (const auto& [name, tensor] : f.tensors) data += tensor.bytes().size();
  ASSERT_LE(data, bytes.size());
  ASSERT_TRUE(same(read_safetensors(write_safetensors(f), "mine"), f));
}

TEST(ReadSafetensors, SurvivesEveryChangeOfAByte) {
  const std::string valid_file = write_safetensors(sample());
  int refused = 0;
  int valid = 0;
  for (std::size_t at = 0; at < valid_file.size(); ++at) {
    for (int byte = 0; byte < 256; ++byte) {
      std::string bytes = valid_file;
      bytes[at] = static_cast<char>(byte);
      expect_refused_or_valid(bytes, refused, valid);
    }
  }
  EXPECT_GT(refused, 10000);
  EXPECT_GT(valid, 1000);
}

TEST(ReadSafetensors, SurvivesCutsAndInsertions) {
  const std::string valid_file = write_safetensors(sample());
  int refused = 0;
  int valid = 0;
  for (std::size_t at = 0; at < valid_file.size(); ++at) {
    EXPECT_NE(fault_of(std::string_view(valid_file).substr(0, at)), "") << "cut at " << at;
    expect_refused_or_valid(valid_file.substr(0, at) + valid_file.substr(at + 1), refused, valid);
    for (const std::string_view inserted : {"\"", "{", "}", "[", "0", ",", "\\", " ", "\xff", "e9", "-", "x", ":"}) {
      std::string bytes = valid_file;
      bytes.insert(at, inserted);
      expect_refused_or_valid(bytes, refused, valid);
      // With the header's length put right, so that the change reaches the parser.
      std::uint64_t length = 0;
      std::memcpy(&length, valid_file.data(), sizeof(length));
      length += at >= 8 && at < 8 + length ? inserted.size() : 0;
      std::memcpy(bytes.data(), &length, sizeof(length));
      expect_refused_or_valid(bytes, refused, valid);
    }
  }
  EXPECT_GT(refused, 1000);
  EXPECT_GT(valid, 10);
}

TEST(ReadSafetensors, SurvivesRandomSplices) {
  const std::string valid_file = write_safetensors(sample());
  std::mt19937_64 random(3);
  int refused = 0;
  int valid = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string bytes = valid_file;
    for (std::uint64_t changes = 1 + random() % 4; changes > 0; --changes) {
      const std::size_t from = random() % bytes.size();
      const std::size_t count = std::min<std::size_t>(random() % 16, bytes.size() - from);
      const std::string piece = bytes.substr(from, count);
      const std::size_t to = random() % bytes.size();
      if ((random() & 1) != 0) {
        bytes.replace(to, std::min(count, bytes.size() - to), piece);
      } else {
        bytes.insert(to, piece);
      }
    }
    expect_refused_or_valid(bytes, refused, valid);
  }
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace attest
