// The file of a case: what goes in comes out, what users capture is taken, and what is wrong has one line.
#include "core/problem/case_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <limits>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "core/problem/case.h"
#include "core/support/files.h"
#include "core/test/refusal.h"
#include "core/test/temporary_folder.h"
#include "core/value/safetensors.h"

namespace attest {
namespace {

namespace fs = std::filesystem;

/// Any bits whatever but NaN, infinities and, of a bool, anything but 0 and 1.
void fill(Tensor& t, std::mt19937_64& random) {
  for (std::int64_t i = 0; i < t.elements(); ++i) {
    do {
      const std::uint64_t bits = random();
      const std::size_t size = size_of(t.dtype());
      std::memcpy(t.bytes().data() + static_cast<std::size_t>(i) * size, &bits, size);
      if (t.dtype() == DType::boolean) t.set(i, static_cast<double>(bits & 1));
    } while (!std::isfinite(t[i]));
  }
}

double any_scale(std::mt19937_64& random) {
  double scale = 0;
  do {
    scale = std::abs(std::bit_cast<double>(random()));
  } while (!std::isfinite(scale) || scale == 0);
  return scale;
}

Case any_case(std::mt19937_64& random) {
  const auto up_to = [&](std::int64_t most) {
    return 1 + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(most));
  };
  const auto dtype = static_cast<DType>(random() % 6);
  const auto chance = [&] { return (random() & 1) != 0; };
  const std::int64_t batch = up_to(2), kv_heads = up_to(2), queries = up_to(4) - 1, keys = up_to(4) - 1;
  Case c;
  std::int64_t heads = kv_heads * up_to(2);
  if (chance()) {
    const std::int64_t key_dim = up_to(4);
    c[Slot::q] = Tensor(dtype, {batch, heads, queries, key_dim});
    c[Slot::k] = Tensor(dtype, {batch, kv_heads, keys, key_dim});
    c[Slot::v] = Tensor(dtype, {batch, kv_heads, keys, up_to(4)});
  } else {
    c.operation = Operation::multihead;
    c.heads = static_cast<std::int32_t>(heads);
    const std::int64_t key_columns = heads * up_to(2), value_columns = heads * up_to(2), out = up_to(3);
    const std::int64_t c_q = up_to(3), c_k = up_to(3), c_v = up_to(3);
    c[Slot::q] = Tensor(dtype, {batch, queries, c_q});
    c[Slot::k] = Tensor(dtype, {batch, keys, c_k});
    c[Slot::v] = Tensor(dtype, {batch, keys, c_v});
    c[Slot::w_q] = Tensor(dtype, {c_q, key_columns});
    c[Slot::w_k] = Tensor(dtype, {c_k, key_columns});
    c[Slot::w_v] = Tensor(dtype, {c_v, value_columns});
    if (chance()) c[Slot::b_q] = Tensor(dtype, {key_columns});
    if (chance()) c[Slot::b_k] = Tensor(dtype, {key_columns});
    if (chance()) c[Slot::b_v] = Tensor(dtype, {value_columns});
    if (chance()) c[Slot::w_o] = Tensor(dtype, {value_columns, out});
    if (chance()) c[Slot::b_o] = Tensor(dtype, {c[Slot::w_o].present() ? out : value_columns});
    if (chance()) {
      c[Slot::bias_k] = Tensor(dtype, {key_columns});
      c[Slot::bias_v] = Tensor(dtype, {value_columns});
    }
  }
  if (chance()) {
    c[Slot::mask] =
        Tensor(chance() ? dtype : DType::boolean, {chance() ? batch : 1, chance() ? heads : 1, queries, keys});
  }
  for (Tensor& t : c.tensors) fill(t, random);
  if (c.mask().elements() > 0 && c.mask().dtype() != DType::boolean && c.mask().dtype() != DType::f8_e4m3) {
    c[Slot::mask].set(0, -std::numeric_limits<double>::infinity());
  }
  c.scale = any_scale(random);
  c.mask_convention = static_cast<MaskConvention>(random() % 2);
  c.causal = static_cast<Causal>(random() % 3);
  for (int i = static_cast<int>(random() % 4); i > 0; --i) {
    c.provenance.others["key " + std::to_string(random() % 10)] = "välue\n\"" + std::to_string(random());
  }
  return c;
}

std::string fault_of(std::string_view bytes) {
  return refusal([&] { return decode_case(bytes, "mine"); });
}

/// The file of a small attention case that a test then spoils.
TensorFile small() {
  TensorFile f;
  f.metadata = {{"attest", "1"}, {"op", "attention"}, {"scale", "0.125"}};
  for (const char* name : {"q", "k", "v"}) f.tensors.emplace_back(name, Tensor(DType::f32, {1, 1, 2, 3}));
  return f;
}

std::string fault_with(std::string_view key, std::string_view value) {
  TensorFile f = small();
  f.metadata[std::string(key)] = value;
  return fault_of(write_safetensors(f));
}

TEST(CaseFile, RoundTripIsIdentity) {
  std::mt19937_64 random(5);
  for (int i = 0; i < 2000; ++i) {
    const Case c = any_case(random);
    validate(c);
    ASSERT_EQ(decode_case(encode_case(c), "mine"), c) << i;
  }
}

TEST(CaseFile, KeepsEveryScale) {
  Case c = decode_case(write_safetensors(small()), "mine");
  std::mt19937_64 random(6);
  std::vector<double> scales{0.125, 1 / std::sqrt(2.0), 0x1p-1074, 0x1p-1022, std::numeric_limits<double>::max(), 0.1};
  for (int i = 0; i < 2000; ++i) scales.push_back(any_scale(random));
  for (const double scale : scales) {
    c.scale = scale;
    ASSERT_EQ(decode_case(encode_case(c), "mine").scale, scale) << std::hexfloat << scale;
  }
}

TEST(CaseFile, HasTheMetadataOfTheContract) {
  Case c = decode_case(write_safetensors(small()), "mine");
  c.causal = Causal::top_left;
  c.mask_convention = MaskConvention::pre_scale;
  c.provenance.property = "attention.oracle";
  EXPECT_EQ(read_safetensors(encode_case(c), "mine").metadata,
            (std::map<std::string, std::string>{{"attest", "1"},
                                                {"op", "attention"},
                                                {"scale", "0.125"},
                                                {"mask_convention", "pre-scale"},
                                                {"causal", "top-left"},
                                                {"property", "attention.oracle"}}));
}

TEST(CaseFile, KeepsWhatItIsToldOfItsProvenance) {
  TensorFile f = small();
  for (const ProvenanceField& field : provenance_fields) f.metadata[std::string(field.name)] = field.name;
  f.metadata["strides"] = "k=padded-rows";
  f.metadata["edge"] = "front";
  f.metadata["of a later version"] = "or a user";
  f.metadata["mask_convention"] = "post-scale";
  f.metadata["causal"] = "none";
  const Case c = decode_case(write_safetensors(f), "mine");
  for (const ProvenanceField& field : provenance_fields)
    EXPECT_EQ(c.provenance.*field.member, f.metadata.at(std::string(field.name)));
  EXPECT_EQ(c.provenance.seed, "seed");
  EXPECT_EQ(c.provenance.others, (std::map<std::string, std::string>{{"of a later version", "or a user"}}));
  EXPECT_EQ(read_safetensors(encode_case(c), "mine").metadata, f.metadata);
  EXPECT_EQ(decode_case(encode_case(c), "mine"), c);
}

TEST(CaseFile, HasDefaults) {
  const Case c = decode_case(write_safetensors(small()), "mine");
  EXPECT_EQ(c.scale, 0.125);
  EXPECT_EQ(c.mask_convention, MaskConvention::post_scale);
  EXPECT_EQ(c.causal, Causal::none);
  EXPECT_EQ(c.provenance, Provenance());
}

TEST(CaseFile, TakesTensorsWithoutBatchOrHeads) {
  TensorFile f;
  f.metadata = small().metadata;
  f.tensors.emplace_back("q", Tensor(DType::f32, {2, 3}));
  f.tensors.emplace_back("k", Tensor(DType::f32, {1, 5, 3}));
  f.tensors.emplace_back("v", Tensor(DType::f32, {5, 4}));
  f.tensors.emplace_back("mask", Tensor(DType::boolean, {2, 5}));
  Case c = decode_case(write_safetensors(f), "mine");
  EXPECT_EQ(c.q().shape(), (Shape{1, 1, 2, 3}));
  EXPECT_EQ(c.k().shape(), (Shape{1, 1, 5, 3}));
  EXPECT_EQ(c.v().shape(), (Shape{1, 1, 5, 4}));
  EXPECT_EQ(c.mask().shape(), (Shape{1, 1, 2, 5}));

  f.metadata["op"] = "multihead";
  f.metadata["heads"] = "1";
  f.tensors[1].second = Tensor(DType::f32, {5, 3});
  f.tensors[3].second = Tensor(DType::boolean, {1, 2, 5});
  for (const char* name : {"w_q", "w_k"}) f.tensors.emplace_back(name, Tensor(DType::f32, {3, 6}));
  f.tensors.emplace_back("w_v", Tensor(DType::f32, {4, 6}));
  c = decode_case(write_safetensors(f), "mine");
  EXPECT_EQ(c.q().shape(), (Shape{1, 2, 3}));
  EXPECT_EQ(c.k().shape(), (Shape{1, 5, 3}));
  EXPECT_EQ(c.mask().shape(), (Shape{1, 1, 2, 5}));
  EXPECT_EQ(c[Slot::w_q].shape(), (Shape{3, 6}));
}

TEST(CaseFile, StatesAWindowUnderAnotherNumber) {
  Case c = decode_case(write_safetensors(small()), "mine");
  EXPECT_EQ(read_safetensors(encode_case(c), "mine").metadata.at("attest"), "1");
  c.window_left = 3, c.alignment = Causal::bottom_right;
  TensorFile f = read_safetensors(encode_case(c), "mine");
  EXPECT_EQ(f.metadata.at("attest"), "2");
  EXPECT_EQ(f.metadata.at("variants"), "window");
  EXPECT_EQ(f.metadata.at("window_left"), "3");
  EXPECT_EQ(f.metadata.at("alignment"), "bottom-right");
  EXPECT_FALSE(f.metadata.contains("window_right"));
  EXPECT_EQ(decode_case(encode_case(c), "mine"), c);
  const auto fault_without = [&](const std::string& key) {
    TensorFile without = f;
    without.metadata.erase(key);
    return fault_of(write_safetensors(without));
  };
  EXPECT_EQ(fault_without("alignment"),
            "mine: there are windows without an alignment; it is \"top-left\" or \"bottom-right\"");
  EXPECT_THAT(fault_without("window_left"), testing::HasSubstr("\"variants\" is \"window\" and \"attest\" is \"2\""));
  EXPECT_THAT(fault_without("variants"), testing::HasSubstr("it must be \"window\""));
  // A causal form says how a window is aligned.
  f.metadata["causal"] = "top-left";
  EXPECT_EQ(fault_of(write_safetensors(f)),
            "mine: alignment is bottom-right and causal top-left; windows count positions as the causal form does");
  f.metadata.erase("alignment");
  EXPECT_EQ(decode_case(write_safetensors(f), "mine").alignment, Causal::top_left);
  f.metadata["window_left"] = "-3";
  EXPECT_EQ(fault_of(write_safetensors(f)), "mine: window_left is -3; it must be -1, or from 0 to 2147483647");
}

TEST(CaseFile, StatesChunksUnderAnotherNumber) {
  Case c = decode_case(write_safetensors(small()), "mine");
  c.attention_chunk = 2, c.alignment = Causal::top_left;
  TensorFile f = read_safetensors(encode_case(c), "mine");
  EXPECT_EQ(f.metadata.at("attest"), "2");
  EXPECT_EQ(f.metadata.at("variants"), "chunk");
  EXPECT_EQ(f.metadata.at("attention_chunk"), "2");
  EXPECT_EQ(f.metadata.at("alignment"), "top-left");
  EXPECT_EQ(decode_case(encode_case(c), "mine"), c);
  f.metadata["attention_chunk"] = "-2";
  EXPECT_EQ(fault_of(write_safetensors(f)), "mine: attention_chunk is -2; it must be 0, or from 1 to 2147483647");
  c.window_left = 3;
  EXPECT_EQ(read_safetensors(encode_case(c), "mine").metadata.at("variants"), "window chunk");
  EXPECT_EQ(decode_case(encode_case(c), "mine"), c);
}

TEST(CaseFile, StatesSlopesUnderAnotherNumber) {
  Case c = decode_case(write_safetensors(small()), "mine");
  const std::int64_t heads = c.q().shape()[1];
  c[Slot::alibi_slopes] = Tensor(DType::f32, {1, heads});
  for (std::int64_t h = 0; h < heads; ++h) c[Slot::alibi_slopes].set(h, 0.1 - static_cast<double>(h));
  c.alignment = Causal::bottom_right;
  TensorFile f = read_safetensors(encode_case(c), "mine");
  EXPECT_EQ(f.metadata.at("attest"), "2");
  EXPECT_EQ(f.metadata.at("variants"), "alibi");
  EXPECT_EQ(f.metadata.at("alignment"), "bottom-right");
  EXPECT_EQ(decode_case(encode_case(c), "mine"), c);
  TensorFile other = f;
  other.metadata.erase("alignment");
  EXPECT_EQ(fault_of(write_safetensors(other)),
            "mine: there are ALiBi slopes without an alignment; it is \"top-left\" or \"bottom-right\"");
  // A causal form says it.
  other.metadata["causal"] = "top-left";
  EXPECT_EQ(decode_case(write_safetensors(other), "mine").alignment, Causal::top_left);
  other = f;
  other.metadata["variants"] = "window";
  EXPECT_THAT(fault_of(write_safetensors(other)), testing::HasSubstr("it must be \"alibi\""));
  other = f;
  other.metadata["attest"] = "1", other.metadata.erase("variants");
  EXPECT_THAT(fault_of(write_safetensors(other)), testing::HasSubstr("has arguments of alibi and \"attest\" is \"1\""));
  c.window_left = 3;
  EXPECT_EQ(read_safetensors(encode_case(c), "mine").metadata.at("variants"), "window alibi");
  EXPECT_EQ(decode_case(encode_case(c), "mine"), c);
}

TEST(CaseFile, NamesWhatIsWrong) {
  TensorFile f = small();
  f.metadata.erase("attest");
  EXPECT_EQ(fault_of(write_safetensors(f)), "mine: metadata has no \"attest\"; a case states it, as \"attest\": \"1\"");
  f = small();
  f.metadata.erase("scale");
  EXPECT_EQ(fault_of(write_safetensors(f)),
            "mine: metadata has no \"scale\"; a case states it, as \"scale\": \"0.125\"");
  f = small();
  f.metadata["op"] = "multihead";
  EXPECT_EQ(fault_of(write_safetensors(f)), "mine: metadata has no \"heads\"; a case states it, as \"heads\": \"8\"");
  f.metadata["heads"] = "8 ";
  EXPECT_EQ(fault_of(write_safetensors(f)), "mine: metadata \"heads\" is \"8 \"; it must be a whole number, as \"8\"");
  EXPECT_EQ(fault_with("attest", "3"), "mine: metadata \"attest\" is \"3\"; this version reads \"1\" and \"2\"");
  EXPECT_EQ(fault_with("attest", "2"),
            "mine: metadata \"variants\" is missing and \"attest\" is \"2\"; by its arguments it must be left out, and "
            "\"attest\" \"1\"");
  EXPECT_EQ(fault_with("window_left", "3"),
            "mine: metadata has arguments of window and \"attest\" is \"1\"; it must be \"2\"");
  EXPECT_EQ(fault_with("op", "atention"),
            "mine: metadata \"op\" is \"atention\", which is none; did you mean \"attention\"?");
  EXPECT_EQ(fault_with("causal", "top_left"),
            "mine: metadata \"causal\" is \"top_left\", which is none; did you mean \"top-left\"?");
  EXPECT_EQ(fault_with("mask_convention", "x"),
            "mine: metadata \"mask_convention\" is \"x\", which is none; known: \"post-scale\", \"pre-scale\"");
  for (const char* scale : {"", "x", " 1", "1 ", "0,5", "+1", "0x1p3", "1e400", "1e-400", "1.0f"}) {
    EXPECT_EQ(fault_with("scale", scale), "mine: metadata \"scale\" is \"" + std::string(scale) +
                                              "\"; it must be a decimal number that a double holds, as \"0.125\"");
  }
  for (const char* scale : {"inf", "nan", "0", "-1"}) {
    EXPECT_THAT(fault_with("scale", scale), Says("it must be finite and greater than 0"));
  }
  f = small();
  f.tensors.emplace_back("masks", Tensor(DType::f32, {2, 2}));
  EXPECT_EQ(fault_of(write_safetensors(f)),
            "mine: holds a tensor \"masks\", which attention does not take; did you mean \"mask\"?");
  f.tensors.back().first = "w_q";
  EXPECT_EQ(fault_of(write_safetensors(f)),
            "mine: holds a tensor \"w_q\", which attention does not take; known: \"q\", \"k\", \"v\", \"mask\", "
            "\"q_lengths\", \"kv_lengths\", \"q_starts\", \"kv_starts\", \"left_pad\", \"page_table\", "
            "\"page_table_v\", \"cache_index\", \"k_new\", \"v_new\", \"sink\", \"keep\", \"alibi_slopes\", "
            "\"q_descale\", \"k_descale\", \"v_descale\", \"d_out\", \"d_lse\"");
  f = small();
  f.tensors[2].second = Tensor(DType::f32, {1, 1, 0, 3});
  EXPECT_EQ(fault_of(write_safetensors(f)),
            "mine: v has shape [1, 1, 0, 3]; it must be [batch, kv_heads, N, dv] = [1, 1, 2, 3]");
  f = small();
  f.tensors[1].second.set(0, std::numeric_limits<double>::quiet_NaN());
  EXPECT_EQ(fault_of(write_safetensors(f)),
            "mine: k holds nan at [0, 0, 0, 0]; inputs are finite unless the metadata says \"non_finite\": \"yes\"");
  f.metadata["non_finite"] = "yes";
  EXPECT_EQ(fault_of(write_safetensors(f)), "");
}

TEST(CaseFile, SurvivesEveryChangeOfAByte) {
  std::mt19937_64 random(8);
  Case c;
  do {
    c = any_case(random);
  } while (c.operation != Operation::multihead || !c.mask().present() || c.mask().elements() == 0);
  const std::string valid_file = encode_case(c);
  int refused = 0;
  int valid = 0;
  for (std::size_t at = 0; at < valid_file.size(); ++at) {
    for (const int bit : {0, 1, 2, 3, 4, 5, 6, 7}) {
      std::string bytes = valid_file;
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << bit));
      try {
        const Case changed = decode_case(bytes, "mine");
        ++valid;
        ASSERT_EQ(decode_case(encode_case(changed), "mine"), changed);
      } catch (const UsageError&) {
        ++refused;
      }
    }
  }
  EXPECT_GT(refused, 1000);
  EXPECT_GT(valid, 100);
}

class SavedCase : public testing::Test {
 protected:
  test::TemporaryFolder temporary_;
  fs::path folder_ = temporary_.path();
};

TEST(CaseFile, KeepsWhatAKernelAnswered) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 500; ++i) {
    AnsweredCase c{any_case(random), {}};
    // Without an answer it is the file that it would be.
    ASSERT_EQ(encode_case(c), encode_case(c.value)) << i;
    ASSERT_FALSE(decode_answered_case(encode_case(c), "mine").found.present());
    c.found = Tensor(static_cast<DType>(random() % 6), c.value.out_shape());
    for (std::int64_t at = 0; at < c.found.elements(); ++at) c.found.set(at, static_cast<double>(random() % 8));
    const AnsweredCase again = decode_answered_case(encode_case(c), "mine");
    ASSERT_EQ(again.value, c.value) << i;
    ASSERT_EQ(again.found, c.found) << i;
    // Who asks for the problem alone has it.
    ASSERT_EQ(decode_case(encode_case(c), "mine"), c.value) << i;
  }
}

TEST(CaseFile, RefusesAnAnswerThatNoneCanBe) {
  TensorFile f = small();
  f.tensors.emplace_back("found", Tensor(DType::f32, {1, 1, 2, 4}));
  EXPECT_EQ(
      fault_of(write_safetensors(f)),
      "mine: holds a tensor \"found\" of shape [1, 1, 2, 4]; what a kernel answered to this case has [1, 1, 2, 3]");
  f.tensors.back().second = Tensor(DType::boolean, {1, 1, 2, 3});
  EXPECT_EQ(fault_of(write_safetensors(f)), "mine: holds a tensor \"found\" of bool; an answer has numbers");
}

TEST_F(SavedCase, IsLoadedAgain) {
  std::mt19937_64 random(9);
  const Case c = any_case(random);
  save_case(c, folder_ / "a.safetensors");
  EXPECT_EQ(load_case(folder_ / "a.safetensors"), c);
  EXPECT_EQ(read_file(folder_ / "a.safetensors"), encode_case(c));
}

TEST_F(SavedCase, IsNamedWhenItCannotBeRead) {
  const auto line = [](const fs::path& file) { return refusal([&] { return load_case(file); }); };
  const std::string missing = (folder_ / "none").string();
  EXPECT_EQ(line(missing), "cannot read \"" + missing + "\": No such file or directory");
  EXPECT_EQ(line(folder_), "cannot read \"" + folder_.string() + "\": Is a directory");
  write_file_atomically(folder_ / "text", "hello");
  EXPECT_EQ(line(folder_ / "text"), (folder_ / "text").string() + ": 5 bytes are too few for a safetensors file");
}

}  // namespace
}  // namespace attest
