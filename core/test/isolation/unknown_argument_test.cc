// Arguments of a later Attest, put to the wrappers of today: each answers `unsupported` and names what it does not
// know, and what is known is served. Left out, an argument that a kernel never saw would be held against it.
#include <attest/known_arguments.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "core/isolation/child.h"
#include "core/isolation/frames.h"
#include "core/problem/fields.h"
#include "core/test/isolation/adapter_checks.h"
#include "core/test/places.h"
#include "core/value/safetensors.h"

namespace attest {
namespace {

using namespace testing_process;

/// A program that speaks frames, without what Attest itself would refuse to send.
class Program {
 public:
  explicit Program(const std::string& command) {
    process::Pair input = process::make_pipe(), output = process::make_pipe();
    process::Launch launch;
    launch.argv = {"/bin/sh", "-c", command};
    launch.standard_input = input.read.get();
    launch.standard_output = output.write.get();
    child_ = process::Child(launch);
    channel_.emplace(std::move(input.write), std::move(output.read), /*interrupt=*/-1);
  }

  /// The metadata of the reply; of one with an output {"status": "ok"}.
  std::map<std::string, std::string> reply_to(const TensorFile& request) {
    return reply_to_bytes(write_safetensors(request));
  }
  std::map<std::string, std::string> reply_to_bytes(const std::string& request) {
    const auto until = process::Clock::now() + std::chrono::seconds(60);
    const process::Exchange exchange = channel_->exchange(request, until);
    EXPECT_EQ(exchange.status, CallStatus::ok) << exchange.message;
    if (exchange.status != CallStatus::ok) return {};
    TensorFile file = read_safetensors(exchange.body, "the reply");
    if (!file.tensors.empty()) file.metadata["status"] = "ok";
    return file.metadata;
  }

 private:
  process::Child child_;
  std::optional<process::FrameChannel> channel_;
};

/// As Attest sends it today.
TensorFile request_of(const Case& c) {
  return read_safetensors(encode_case(c), "the request");
}

void expect_unsupported(Program& program, const TensorFile& request, const std::string& named) {
  const auto reply = program.reply_to(request);
  ASSERT_TRUE(reply.contains("status")) << named;
  EXPECT_EQ(reply.at("status"), "unsupported") << named << ": " << reply.at("message");
  EXPECT_THAT(reply.at("message"), Says(named));
}

/// `attention` and `multihead` serve f32 with a function of that entry alone.
void expect_to_refuse_the_unknown(Program& attention, Program& multihead, const char* adapter) {
  SCOPED_TRACE(adapter);
  Case c = attention_case(DType::f32, {});
  c[Slot::mask] = mask_of(DType::f32, {1, 1, 3, 5});
  const TensorFile known = request_of(c);
  const auto with = [&](const std::string& key, const std::string& value) {
    TensorFile request = known;
    request.metadata[key] = value;
    return request;
  };
  for (const auto& [key, value] : {std::pair{"attest", "1"},
                                   {"want", "lse"},
                                   {"out_dtype", "f32"},
                                   {"scale", "0.5"},
                                   {"causal", "none"},
                                   {"mask_convention", "post-scale"}}) {
    auto reply = attention.reply_to(with(key, value));
    EXPECT_THAT(reply["message"], NeverSays("does not know")) << key;
    // A function may lack the parameter all the same.
    if (std::string(key) != "want" && std::string(key) != "out_dtype") {
      EXPECT_EQ(reply["status"], "ok") << key;
    }
  }

  expect_unsupported(attention, with("window", "3"), "the key \"window\"");
  expect_unsupported(attention, with("heads", "2"), "the key \"heads\"");
  expect_unsupported(attention, with("toString", "3"), "the key \"toString\"");
  expect_unsupported(attention, with("attest", "3"), "\"3\" as attest");
  expect_unsupported(attention, with("want", "weights"), "\"weights\" as want");
  expect_unsupported(attention, with("out_dtype", "f4"), "\"f4\" as out_dtype");
  expect_unsupported(attention, with("causal", "diagonal"), "\"diagonal\" as causal");
  expect_unsupported(attention, with("mask_convention", "log"), "\"log\" as mask_convention");
  expect_unsupported(attention, with("op", "backward"), "backward");
  TensorFile request = known;
  request.tensors.emplace_back("sinks", Tensor(DType::f32, {1, 2}));
  expect_unsupported(attention, request, "\"sinks\"");
  request = known;
  request.tensors.emplace_back("w_q", Tensor(DType::f32, {4, 4}));
  expect_unsupported(attention, request, "\"w_q\"");

  Case many = multihead_case(DType::f64, {});
  for (const Slot slot : {Slot::w_o, Slot::b_o, Slot::b_k, Slot::b_v}) many[slot] = Tensor();
  request = request_of(many);
  EXPECT_EQ(multihead.reply_to(request)["status"], "ok");
  request.tensors.emplace_back("gate", Tensor(DType::f64, {2}));
  expect_unsupported(multihead, request, "\"gate\"");
  // What was refused leaves no trace.
  EXPECT_EQ(attention.reply_to(known)["status"], "ok");
}

/// A request with a tensor in a format that this version of Attest has no name for.
void expect_to_refuse_a_format(Program& program) {
  std::string bytes = write_safetensors(request_of(attention_case(DType::f32, {})));
  const std::size_t at = bytes.find("\"F32\"");
  ASSERT_NE(at, std::string::npos);
  bytes.replace(at, 5, "\"F31\"");
  const auto reply = program.reply_to_bytes(bytes);
  EXPECT_EQ(reply.at("status"), "unsupported");
  EXPECT_THAT(reply.at("message"), Says("F31"));
}

TEST(UnknownArgument, IsRefusedByThePythonAdapter) {
  if (!succeeds("/usr/bin/python3 -c 'import numpy'")) GTEST_SKIP() << "numpy cannot be imported";
  const std::string run = "PYTHONPATH='" + source_folder() + "/core/adapters/python' exec /usr/bin/python3 '" +
                          source_folder() + "/core/test/isolation/adapter_kernels.py' ";
  Program attention(run + "softmax-product"), multihead(run + "multihead");
  expect_to_refuse_the_unknown(attention, multihead, "Python");
  expect_to_refuse_a_format(attention);
  // A function that takes whatever it is given by name is not given what nobody knows.
  Program takes_all(run + "echo-bits");
  TensorFile request = request_of(attention_case(DType::f16, {}));
  EXPECT_EQ(takes_all.reply_to(request)["status"], "ok");
  request.metadata["window"] = "3";
  expect_unsupported(takes_all, request, "\"window\"");
}

TEST(UnknownArgument, IsRefusedByTheJavaScriptAdapter) {
  if (!succeeds("node -e ''")) GTEST_SKIP() << "there is no Node.js";
  const std::string run = "exec node '" + source_folder() + "/core/test/isolation/adapter_kernels.js' ";
  Program attention(run + "echo"), multihead(run + "multihead");
  expect_to_refuse_the_unknown(attention, multihead, "JavaScript");
  expect_to_refuse_a_format(attention);
  // Arrays are row-major there.
  TensorFile request = request_of(attention_case(DType::f32, {}));
  request.metadata["strides"] = "{}";
  expect_unsupported(attention, request, "\"strides\"");
}

/// A structure of a later header: 16 bytes more than today's.
template <class Structure>
struct Later {
  Structure known{};
  std::array<unsigned char, 16> tail{};
};

class UnknownMember : public testing::Test {
 protected:
  UnknownMember() {
    later_.known.size = sizeof later_;
    result_.known.size = sizeof result_;
    many_.known.size = sizeof many_;
    backward_.known.size = sizeof backward_;
    backward_.known.forward = &later_.known;
    gradients_.known.size = sizeof gradients_;
  }
  int known() { return attest_known_arguments(&later_.known, &result_.known, message_.data(), message_.size()); }
  int many_known() {
    return attest_known_multihead_arguments(&many_.known, &result_.known, message_.data(), message_.size());
  }
  int backward_known() {
    return attest_known_backward_arguments(&backward_.known, &gradients_.known, message_.data(), message_.size());
  }
  Later<attest_problem> later_;
  Later<attest_multihead_problem> many_;
  Later<attest_result> result_;
  Later<attest_backward_problem> backward_;
  Later<attest_gradients> gradients_;
  std::array<char, 256> message_{};
};

TEST_F(UnknownMember, OfZerosSaysNothing) {
  EXPECT_EQ(known(), ATTEST_OK);
  EXPECT_EQ(many_known(), ATTEST_OK);
  EXPECT_EQ(backward_known(), ATTEST_OK);
  later_.known.causal = ATTEST_CAUSAL_BOTTOM_RIGHT;
  later_.known.mask_convention = ATTEST_MASK_PRE_SCALE;
  later_.known.mask.dtype = ATTEST_BOOL;
  later_.known.window_left = 3;
  for (const Variant& variant : variants()) {
    later_.known.variants = variant.bit;
    EXPECT_EQ(known(), ATTEST_OK) << variant.name << ": " << message_.data();
    EXPECT_EQ(backward_known(), ATTEST_OK) << variant.name << ": " << message_.data();
  }
}

TEST_F(UnknownMember, IsNamed) {
  const auto expect_named = [&](int status, const std::string& name) {
    EXPECT_EQ(status, ATTEST_UNSUPPORTED) << name;
    EXPECT_THAT(message_.data(), Says(name));
  };
  later_.tail[15] = 1;
  expect_named(known(), "byte " + std::to_string(sizeof(attest_problem) + 15) + " of attest_problem");
  // Behind its end a structure says nothing, whatever stands there.
  later_.known.size -= 1;
  EXPECT_EQ(known(), ATTEST_OK);
  later_.known.variants = 0x80000000;
  expect_named(known(), "variants 2147483648");
  // A structure of the first version has no variants, whatever stands there.
  later_.known.size = offsetof(attest_problem, variants);
  EXPECT_EQ(known(), ATTEST_OK);
  later_.known.size = sizeof later_ - 1;
  later_.known.variants = 0;
  many_.tail[0] = 1;
  expect_named(many_known(), "of attest_multihead_problem");
  many_.tail[0] = 0;
  many_.known.reserved = 2;
  expect_named(many_known(), "reserved 2");
  later_.known.causal = 3;
  expect_named(known(), "causal 3");
  later_.known.causal = -1;
  expect_named(known(), "causal -1");
  later_.known.causal = 0;
  later_.known.mask_convention = 2;
  expect_named(known(), "mask_convention 2");
  later_.known.mask_convention = 0;
  later_.known.mask.dtype = 7;
  expect_named(known(), "mask's dtype 7");
  later_.known.mask.dtype = 0;
  later_.known.q.dtype = 7;
  expect_named(known(), "q's dtype 7");
  later_.known.q.dtype = 0;
  for (const auto& [view, name] : {std::pair{&later_.known.k, "k's dtype 9"}, {&later_.known.v, "v's dtype 9"}}) {
    view->dtype = ATTEST_I8;
    EXPECT_EQ(known(), ATTEST_OK) << message_.data();
    view->dtype = 9;
    expect_named(known(), name);
    view->dtype = 0;
  }
  later_.known.sink.dtype = 7;
  EXPECT_EQ(known(), ATTEST_OK) << "there is none";
  later_.known.variants = ATTEST_SINK;
  expect_named(known(), "sink's dtype 7");
  later_.known.variants = 0;
  result_.known.out.dtype = 7;
  expect_named(known(), "out's dtype 7");
  result_.known.out.dtype = 0;
  EXPECT_EQ(known(), ATTEST_OK);
  result_.tail[3] = 1;
  expect_named(known(), "of attest_result");
}

TEST_F(UnknownMember, OfABackwardPassIsNamed) {
  const auto expect_named = [&](const std::string& name) {
    EXPECT_EQ(backward_known(), ATTEST_UNSUPPORTED) << name;
    EXPECT_THAT(message_.data(), Says(name));
  };
  backward_.tail[15] = 1;
  expect_named("byte " + std::to_string(sizeof(attest_backward_problem) + 15) + " of attest_backward_problem");
  backward_.tail[15] = 0;
  gradients_.tail[0] = 1;
  expect_named("byte " + std::to_string(sizeof(attest_gradients)) + " of attest_gradients");
  // The structure of the first version, behind whose end anything may stand.
  gradients_.known.size = offsetof(attest_gradients, dmask);
  backward_.known.size = offsetof(attest_backward_problem, d_lse);
  EXPECT_EQ(backward_known(), ATTEST_OK) << message_.data();
  backward_.known.reserved = 3;
  expect_named("reserved 3");
  backward_.known.reserved = 0, gradients_.known.reserved = 0x80000000;
  expect_named("reserved");
  gradients_.known.reserved = 0, backward_.known.d_out.dtype = 7;
  expect_named("d_out's dtype 7");
  backward_.known.d_out.dtype = 0, later_.known.causal = 3;
  expect_named("causal 3");
  later_.known.causal = 0, later_.known.variants = 0x80000000;
  expect_named("variants 2147483648");
  later_.known.variants = 0, later_.tail[15] = 1;
  expect_named("of attest_problem");
}

}  // namespace
}  // namespace attest
