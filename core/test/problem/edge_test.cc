// Tensors against protected pages: a read outside one is a finding though nothing is done with what was read.
#include "core/problem/edge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "core/kernel/kernel_under_test.h"
#include "core/problem/memory.h"
#include "core/support/errors.h"
#include "core/test/cases.h"
#include "core/test/refusal.h"
#include "core/test/replies.h"

namespace attest {
namespace {

enum class Side { before, behind };

Manifest manifest_for(DType dtype, std::int64_t alignment = 0) {
  Manifest manifest;
  manifest.name = "test";
  manifest.dtypes = {dtype};
  manifest.multihead = manifest.strides = manifest.lse = true;
  manifest.alignment = alignment;
  return manifest;
}

Case attention_case(DType dtype) {
  Case c = test::attention_of({.batch = 2, .heads = 2, .queries = 3, .keys = 5, .dk = 2, .dv = 3},
                              [&](Slot, const Shape& shape) { return Tensor(dtype, shape); });
  c[Slot::mask] = Tensor(dtype, {1, 2, 3, 5});
  return c;
}

Case multihead_case() {
  using enum Slot;
  return test::case_of(
      Operation::multihead, {.queries = 2, .keys = 2, .dk = 5, .dv = 5, .c_q = 3, .c_k = 3, .c_v = 3, .d_o = 4},
      {q, k, v, mask, w_q, w_k, w_v, b_q, b_k, b_v, w_o, b_o, bias_k, bias_v},
      [](Slot slot, const Shape& shape) { return Tensor(slot == mask ? DType::boolean : DType::f32, shape); });
}

/// In bytes from the tensor's data, `by` elements past the first or the last one.
std::ptrdiff_t place_outside(const attest_tensor& t, Side side, std::int64_t by = 1) {
  const auto size = static_cast<std::int64_t>(size_of(static_cast<DType>(t.dtype)));
  std::int64_t last = 0;
  for (int axis = 0; axis < t.rank; ++axis) last += (t.shape[axis] - 1) * t.stride[axis];
  return side == Side::before ? -size * by : size * (last + by);
}

void read_byte(const attest_tensor& t, std::ptrdiff_t at) {
  const volatile char seen = static_cast<const volatile char*>(t.data)[at];
  static_cast<void>(seen);
}

void write_out(attest_result& r) {
  const attest_tensor& t = r.out;
  for (std::int64_t i = 0; i < t.shape[0]; ++i)
    for (std::int64_t j = 0; j < t.shape[1]; ++j)
      for (std::int64_t k = 0; k < t.shape[2]; ++k)
        for (std::int64_t l = 0; l < (t.rank == 4 ? t.shape[3] : 1); ++l)
          store_element(t.data, static_cast<DType>(t.dtype),
                        i * t.stride[0] + j * t.stride[1] + k * t.stride[2] + l * t.stride[3], 1.0);
  for (std::int64_t i = 0; r.lse.data != nullptr && i < r.lse.shape[0]; ++i)
    for (std::int64_t j = 0; j < r.lse.shape[1]; ++j)
      for (std::int64_t k = 0; k < r.lse.shape[2]; ++k)
        store_element(r.lse.data, DType::f64, i * r.lse.stride[0] + j * r.lse.stride[1] + k * r.lse.stride[2], 1.0);
}

std::vector<const attest_tensor*> tensors_of(const attest_problem& p) {
  return {&p.q, &p.k, &p.v, &p.mask};
}
std::vector<const attest_tensor*> tensors_of(const attest_multihead_problem& p) {
  return {&p.q,   &p.k,   &p.v,   &p.w_q, &p.w_k,    &p.w_v,    &p.b_q,
          &p.b_k, &p.b_v, &p.w_o, &p.b_o, &p.bias_k, &p.bias_v, &p.mask};
}

/// Reads `by` elements past tensor number `which`, out and lse behind the inputs, and answers.
struct Reader {
  std::size_t which;
  Side side;
  std::int64_t by = 1;
  template <class Packed>
  int operator()(const Packed& p, attest_result& r, std::string&) const {
    std::vector<const attest_tensor*> all = tensors_of(p);
    all.insert(all.end(), {&r.out, &r.lse});
    write_out(r);
    read_byte(*all[which], place_outside(*all[which], side, by));
    return ATTEST_OK;
  }
};

Reply reply_of(const Reader& reader, Case c, Edge edge, std::int64_t alignment = 0) {
  set_edge(c, edge);
  const bool lse = c.operation == Operation::attention;
  return function_kernel("test:it", manifest_for(c.dtype(), alignment), reader, reader)->run(c, c.dtype(), lse);
}

#ifdef __x86_64__
constexpr const char* did_read = "read";
#else
constexpr const char* did_read = "read or wrote";
#endif

std::string expected(std::string_view name, Side side, std::size_t bytes) {
  return std::string(did_read) + " outside the tensors: byte " + std::to_string(bytes) +
         (side == Side::behind ? " after the end of " : " before the start of ") + std::string(name) +
         ", where this call had a protected page";
}

/// Each tensor and each side is caught at its own edge, and at neither other.
void expect_caught(const Case& c, const std::vector<std::string_view>& names) {
  for (std::size_t which = 0; which < names.size(); ++which) {
    if (names[which].empty()) continue;
    SCOPED_TRACE(names[which]);
    const std::size_t size = names[which] == "lse"                                          ? 8
                             : names[which] == "mask" && c.mask().dtype() == DType::boolean ? 1
                                                                                            : size_of(c.dtype());
    const Reply behind = reply_of({which, Side::behind}, c, Edge::behind);
    expect_ending(behind, CallStatus::failed, expected(names[which], Side::behind, 0));
    const Reply before = reply_of({which, Side::before}, c, Edge::front);
    expect_ending(before, CallStatus::failed, expected(names[which], Side::before, size));
    for (const Edge edge : {Edge::none, Edge::front})
      EXPECT_EQ(reply_of({which, Side::behind}, c, edge).status, CallStatus::ok) << name_of(edge);
    for (const Edge edge : {Edge::none, Edge::behind})
      EXPECT_EQ(reply_of({which, Side::before}, c, edge).status, CallStatus::ok) << name_of(edge);
  }
}

const std::vector<std::string_view> of_attention{"q", "k", "v", "mask", "out", "lse"};

TEST(Edge, CatchesADiscardedReadOutsideEachTensor) {
  for (const DType dtype : {DType::f64, DType::f32, DType::f16, DType::f8_e4m3}) {
    SCOPED_TRACE(name_of(dtype));
    expect_caught(attention_case(dtype), of_attention);
  }
  expect_caught(multihead_case(), {"q", "k", "v", "w_q", "w_k", "w_v", "b_q", "b_k", "b_v", "w_o", "b_o", "bias_k",
                                   "bias_v", "mask", "out", ""});
}

TEST(Edge, CatchesItInEveryLayout) {
  for (int i = 1; i < static_cast<int>(MemoryLayout::count); ++i) {
    const auto layout = static_cast<MemoryLayout>(i);
    if (is_far(layout)) continue;  // which has no edges
    SCOPED_TRACE(name_of(layout));
    Case c = attention_case(DType::f32);
    Layouts layouts;
    for (const Slot slot : {Slot::q, Slot::k, Slot::v, Slot::mask}) layouts[slot] = layout;
    if (is_for_outputs(layout)) layouts.out = layouts.lse = layout;
    set_layouts(c, layouts);
    expect_caught(c, of_attention);
  }
}

TEST(Edge, EndsAsNearAsTheAlignmentLetsIt) {
  // out: 36 floats are 144 bytes, 16 short of a multiple of 32; q: 24 are 96, three times 32.
  const Case c = attention_case(DType::f32);
  EXPECT_EQ(reply_of({4, Side::behind, 1}, c, Edge::behind, 32).status, CallStatus::ok);
  EXPECT_EQ(reply_of({4, Side::behind, 4}, c, Edge::behind, 32).status, CallStatus::ok);
  EXPECT_EQ(reply_of({4, Side::behind, 5}, c, Edge::behind, 32).message, expected("out", Side::behind, 16));
  EXPECT_EQ(reply_of({0, Side::behind, 1}, c, Edge::behind, 32).message, expected("q", Side::behind, 0));
  for (const Edge edge : {Edge::front, Edge::behind}) {
    Case aligned = c;
    set_edge(aligned, edge);
    const auto kernel =
        function_kernel("test:it", manifest_for(DType::f32, 32), [](const attest_problem& p, attest_result& r, auto&) {
          for (const attest_tensor* const t : tensors_of(p))
            EXPECT_EQ(reinterpret_cast<std::uintptr_t>(t->data) % 32, 0U);
          EXPECT_EQ(reinterpret_cast<std::uintptr_t>(r.out.data) % 32, 0U);
          write_out(r);
          return ATTEST_OK;
        });
    EXPECT_EQ(kernel->run(aligned).status, CallStatus::ok);
  }
}

TEST(Edge, StillSeesWhatIsWritten) {
  for (const auto& [edge, at, what] :
       {std::tuple(Edge::behind, -1, "before the start of k changed"),
        std::tuple(Edge::front, 40, "after the end of k changed"), std::tuple(Edge::behind, 40, "after the end of k"),
        std::tuple(Edge::front, -1, "before the start of k"), std::tuple(Edge::behind, 0, "wrote to its input k")}) {
    Case c = attention_case(DType::f32);
    set_edge(c, edge);
    const auto kernel = function_kernel("test:it", manifest_for(DType::f32),
                                        [where = at](const attest_problem& p, attest_result& r, auto&) {
                                          write_out(r);
                                          static_cast<float*>(p.k.data)[where] = 3.0F;
                                          return ATTEST_OK;
                                        });
    const Reply reply = kernel->run(c);
    EXPECT_EQ(reply.status, CallStatus::failed) << name_of(edge) << " " << at;
    EXPECT_THAT(reply.message, Says(what, "wrote"));
  }
}

TEST(Edge, LeavesNothingBehindForTheNextCall) {
  Case c = attention_case(DType::f32);
  set_edge(c, Edge::behind);
  bool wrong = true;
  const auto kernel = function_kernel("test:it", manifest_for(DType::f32),
                                      [&](const attest_problem& p, attest_result& r, std::string& message) {
                                        if (wrong) return Reader{1, Side::behind}(p, r, message);
                                        write_out(r);
                                        return int{ATTEST_OK};
                                      });
  for (int call = 0; call < 3; ++call) {
    wrong = true;
    EXPECT_EQ(kernel->run(c).message, expected("k", Side::behind, 0));
    wrong = false;
    EXPECT_EQ(kernel->run(c).status, CallStatus::ok);
  }
}

TEST(Edge, CatchesAThreadOfTheKernelAndKernelsSideBySide) {
  std::vector<std::jthread> jobs;
  std::array<std::string, 4> messages;
  jobs.reserve(messages.size());
  for (std::size_t job = 0; job < messages.size(); ++job) {
    jobs.emplace_back([&, job] {
      Case c = attention_case(DType::f32);
      set_edge(c, Edge::behind);
      const auto kernel = function_kernel("test:it", manifest_for(DType::f32),
                                          [&](const attest_problem& p, attest_result& r, std::string& message) {
                                            std::jthread([&] { Reader{job, Side::behind}(p, r, message); }).join();
                                            return ATTEST_OK;
                                          });
      for (int call = 0; call < 50; ++call) messages[job] = kernel->run(c).message;
    });
  }
  jobs.clear();
  for (std::size_t job = 0; job < messages.size(); ++job)
    EXPECT_EQ(messages[job], expected(of_attention[job], Side::behind, 0));
}

TEST(EdgeDeathTest, HandsOnWhatIsNoEdge) {
  const auto run = [](auto touch) {
    Case c = attention_case(DType::f32);
    set_edge(c, Edge::behind);
    const auto kernel =
        function_kernel("test:it", manifest_for(DType::f32), [&](const attest_problem& p, attest_result& r, auto&) {
          write_out(r);
          touch(p);
          return ATTEST_OK;
        });
    static_cast<void>(kernel->run(c));
  };
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(run([](const attest_problem&) { *static_cast<volatile int*>(nullptr) = 1; }), "");
  // What runs on for more pages than a mistake of some elements would.
  EXPECT_DEATH(run([](const attest_problem& p) {
                 for (std::ptrdiff_t at = 0; at < 1 << 20; at += 4096) read_byte(p.k, at);
               }),
               "");
}

TEST(Edge, TravelsInTheMetadataOfACase) {
  Case c = attention_case(DType::f32);
  EXPECT_EQ(edge_of(c), Edge::none);
  for (const Edge edge : {Edge::front, Edge::behind}) {
    set_edge(c, edge);
    EXPECT_EQ(c.provenance.edge.value(), name_of(edge));
    EXPECT_EQ(edge_of(decode_case(encode_case(c), "it")), edge);
  }
  c.provenance.edge = "left";
  EXPECT_EQ(refusal([&] { validate(c); }), R"(metadata "edge" is "left"; it must be "none", "front" or "behind")");
  set_edge(c, Edge::none);
  EXPECT_FALSE(c.provenance.edge.has_value());
}

}  // namespace
}  // namespace attest
