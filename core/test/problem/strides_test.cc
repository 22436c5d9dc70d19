// Memory layouts: their names, where they put elements, and what a kernel called in this process is given under them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>

#include "core/kernel/kernel_under_test.h"
#include "core/problem/memory.h"
#include "core/scalars/wide.h"
#include "core/test/cases.h"
#include "core/test/refusal.h"

namespace attest {
namespace {

std::string fault_of(const std::string& text) {
  return refusal([&] { return parse_layouts(text); });
}

TEST(Layouts, AreReadAndWritten) {
  Layouts layouts;
  layouts[Slot::q] = MemoryLayout::repeated;
  layouts[Slot::mask] = MemoryLayout::column_major;
  layouts.out = MemoryLayout::padded_rows;
  layouts.lse = MemoryLayout::shifted;
  const std::string text = "q=repeated mask=column-major out=padded-rows lse=shifted";
  EXPECT_EQ(to_string(layouts), text);
  EXPECT_EQ(parse_layouts(text), layouts);
  EXPECT_EQ(parse_layouts("lse=shifted  out=padded-rows mask=column-major q=repeated v=row-major"), layouts);
  EXPECT_EQ(parse_layouts(""), Layouts());
  EXPECT_EQ(parse_layouts("row-major"), Layouts());
  EXPECT_EQ(to_string(Layouts()), "");
  for (int i = 0; i < static_cast<int>(MemoryLayout::count); ++i) {
    const auto layout = static_cast<MemoryLayout>(i);
    EXPECT_EQ(named<MemoryLayout>(name_of(layout)), layout);
  }
  EXPECT_EQ(named<MemoryLayout>("row_major"), std::nullopt);
}

TEST(Layouts, RefuseWhatTheyDoNotKnowInOneLine) {
  EXPECT_EQ(fault_of("k=padded-row"),
            "metadata \"strides\" holds \"k=padded-row\"; no layout has that name; did you mean \"padded-rows\"?");
  EXPECT_THAT(fault_of("w_p=packed"), Says("no tensor has that name; did you mean"));
  EXPECT_THAT(fault_of("packed"), Says("each word is TENSOR=LAYOUT"));
  EXPECT_THAT(fault_of("q=packed q=packed"), Says("q is named before"));
  for (const char* const output : {"out=repeated", "lse=repeated"})
    EXPECT_THAT(fault_of(output), Says("an output is never repeated"));
  EXPECT_THAT(fault_of("out=aliased"), Says("an output is never aliased"));
}

Case small_case(DType dtype = DType::f32) {
  Case c = test::attention_of({.batch = 2, .heads = 3, .queries = 4, .keys = 2, .dk = 5, .dv = 5},
                              [&](Slot, const Shape& shape) {
                                std::int64_t i = 0;
                                return test::filled(dtype, shape, [&] { return static_cast<double>(i++ % 15); });
                              });
  c[Slot::mask] = Tensor(DType::boolean, {1, 3, 4, 2});
  return c;
}

TEST(Layouts, ArePartOfAValidCase) {
  Case c = small_case();
  set_layouts(c, parse_layouts("k=packed"));
  EXPECT_EQ(c.provenance.strides.value(), "k=packed");
  EXPECT_NO_THROW(validate(c));
  EXPECT_EQ(layouts_of(decode_case(encode_case(c), "a file"))[Slot::k], MemoryLayout::packed);
  c.provenance.strides = "k=odd";
  EXPECT_THROW(validate(c), UsageError);
  EXPECT_THROW(static_cast<void>(decode_case(encode_case(c), "a file")), UsageError);
  set_layouts(c, {});
  EXPECT_FALSE(c.provenance.strides.has_value());
}

TEST(Layouts, AreAskedOnlyOfKernelsThatTakeStrides) {
  Manifest manifest;
  manifest.name = "test";
  manifest.dtypes = {DType::f32};
  Case c = small_case();
  c.provenance.strides = "mask=packed lse=packed";
  EXPECT_EQ(why_unsupported(manifest, c), "has strides mask=packed; the manifest's strides is false");
  manifest.strides = true;
  EXPECT_EQ(why_unsupported(manifest, c), "");
  manifest.strides = false;
  c[Slot::mask] = Tensor();
  EXPECT_EQ(why_unsupported(manifest, c), "") << "a layout of nothing";
}

TEST(Layouts, OfMemoryThatInputsHaveTogetherTakeNoStrides) {
  Manifest manifest;
  manifest.name = "test";
  manifest.dtypes = {DType::f32};
  Case c = small_case();
  c[Slot::mask] = Tensor();
  c.provenance.strides = "v=aliased";
  EXPECT_EQ(why_unsupported(manifest, c), "");
  c.provenance.strides = "k=packed v=aliased";
  EXPECT_EQ(why_unsupported(manifest, c), "has strides k=packed; the manifest's strides is false");
}

Placement placed(MemoryLayout layout, const Shape& shape, std::int64_t unit = 1) {
  return place(layout, Tensor(DType::f32, shape).view(), unit);
}

using Strides = std::array<std::int64_t, 4>;

TEST(Placement, IsAsTheNamesSay) {
  const Shape shape{2, 3, 4, 5};
  EXPECT_EQ(placed(MemoryLayout::row_major, shape), (Placement{{60, 20, 5, 1}, 0, 120}));
  EXPECT_EQ(placed(MemoryLayout::token_major, shape), (Placement{{60, 5, 15, 1}, 0, 120}));
  EXPECT_EQ(placed(MemoryLayout::packed, shape), (Placement{{180, 5, 45, 1}, 15, 345}));
  EXPECT_EQ(placed(MemoryLayout::padded_rows, shape), (Placement{{108, 35, 8, 1}, 0, 207}));
  EXPECT_EQ(placed(MemoryLayout::every_other, shape), (Placement{{120, 40, 10, 2}, 0, 239}));
  EXPECT_EQ(placed(MemoryLayout::column_major, shape), (Placement{{60, 20, 1, 4}, 0, 120}));
  EXPECT_EQ(placed(MemoryLayout::shifted, shape), (Placement{{60, 20, 5, 1}, 1, 121}));
  // Zeros throughout are one element.
  EXPECT_EQ(placed(MemoryLayout::repeated, shape), (Placement{{0, 0, 0, 0}, 0, 1}));
  // Four elements of alignment: rows and starts lie no worse than in row-major memory.
  EXPECT_EQ(placed(MemoryLayout::padded_rows, shape, 4).stride[2], 17);
  EXPECT_EQ(placed(MemoryLayout::packed, shape, 4).start, 16);
  EXPECT_EQ(placed(MemoryLayout::shifted, shape, 4).start, 4);
  // Fewer axes.
  EXPECT_EQ(placed(MemoryLayout::token_major, {2, 3, 4}).stride, (Strides{4, 8, 1, 0}));
  EXPECT_EQ(placed(MemoryLayout::token_major, {2, 3}), placed(MemoryLayout::row_major, {2, 3}));
  EXPECT_EQ(placed(MemoryLayout::column_major, {3}), placed(MemoryLayout::row_major, {3}));
  for (int i = 0; i < static_cast<int>(MemoryLayout::count); ++i)
    EXPECT_EQ(placed(static_cast<MemoryLayout>(i), {2, 0, 4, 5}).elements, 0);
}

TEST(Placement, ReachesBeyondThirtyTwoBits) {
  const Shape shape{2, 3, 4, 5};
  const Placement rows = placed(MemoryLayout::far_rows, shape), heads = placed(MemoryLayout::far_heads, shape);
  // Rows of 30, each of all heads and batch entries; pages of 20.
  EXPECT_EQ(rows.stride, (Strides{15, 5, far_elements / 3 + 1, 1}));
  EXPECT_EQ(heads.stride, (Strides{3 * (far_elements / 5 + 1), far_elements / 5 + 1, 5, 1}));
  EXPECT_GT(3 * rows.stride[2], far_elements);
  EXPECT_GT(heads.stride[0] + 2 * heads.stride[1], far_elements);
  for (const std::int64_t unit : {4, 16}) EXPECT_EQ(placed(MemoryLayout::far_rows, shape, unit).stride[2] % unit, 0);
  EXPECT_EQ(placed(MemoryLayout::far_rows, {2, 3, 1, 5}), placed(MemoryLayout::row_major, {2, 3, 1, 5})) << "one row";
  EXPECT_EQ(placed(MemoryLayout::far_heads, {1, 1, 4, 5}), placed(MemoryLayout::row_major, {1, 1, 4, 5}));
  EXPECT_EQ(placed(MemoryLayout::far_heads, {4, 5}), placed(MemoryLayout::row_major, {4, 5}));
  EXPECT_GT(placed(MemoryLayout::far_heads, {2, 4, 5}).elements, far_elements) << "batch entries of tokens";
}

TEST(Placement, RepeatsOnlyWhatIsEqual) {
  Tensor t(DType::f32, {2, 3, 4, 5});
  for (std::int64_t i = 0; i < t.elements(); ++i) {
    const std::int64_t batch = i / 60, in_head = i % 20;
    t.set(i, static_cast<double>(20 * batch + in_head));
  }
  EXPECT_EQ(place(MemoryLayout::repeated, t.view()), (Placement{{20, 0, 5, 1}, 0, 40}));
  t.set(119, 0.5);
  EXPECT_EQ(place(MemoryLayout::repeated, t.view()), place(MemoryLayout::row_major, t.view()));
  Tensor zeros(DType::f32, {1, 1, 2, 1});
  zeros.set(1, -0.0);
  EXPECT_EQ(place(MemoryLayout::repeated, zeros.view()).elements, 2) << "-0 is other bits than +0";
}

TEST(Placement, GivesEveryElementMemoryOfItsOwn) {
  for (int i = 0; i < static_cast<int>(MemoryLayout::repeated); ++i) {
    for (const Shape& shape : {Shape{2, 3, 4, 5}, Shape{1, 2, 1, 3}, Shape{3, 2, 5}, Shape{4, 3}, Shape{6}}) {
      for (const std::int64_t unit : {1, 4}) {
        const Placement p = placed(static_cast<MemoryLayout>(i), shape, unit);
        std::set<std::int64_t> at;
        for (std::int64_t e = 0; e < shape.elements(); ++e) {
          std::int64_t rest = e, offset = p.start;
          for (int axis = shape.rank() - 1; axis >= 0; rest /= shape[axis--])
            offset += rest % shape[axis] * p.stride[static_cast<std::size_t>(axis)];
          at.insert(offset);
        }
        EXPECT_EQ(static_cast<std::int64_t>(at.size()), shape.elements()) << name_of(static_cast<MemoryLayout>(i));
        EXPECT_EQ(*at.rbegin() + 1, p.elements);
      }
    }
  }
}

// What a function kernel is given.

Reply reply_of(const std::string& strides, const AttentionFunction& attention, DType dtype = DType::f32,
               std::int64_t alignment = 0) {
  Manifest manifest;
  manifest.name = "test";
  manifest.dtypes = {dtype};
  manifest.strides = true;
  manifest.alignment = alignment;
  Case c = small_case(dtype);
  c.provenance.strides = strides;
  return function_kernel("test:it", manifest, attention)->run(c, dtype, true);
}

void put(const attest_tensor& t, std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t x, double value) {
  store_element(t.data, static_cast<DType>(t.dtype), offset_in(t, b, h, i, x), value);
}

/// out = q, lse = 0, by the strides; `skip` is left out.
int copy_q(const attest_problem& p, attest_result& r, std::int64_t skip = -1) {
  for (std::int64_t e = 0; e < 120; ++e) {
    const std::int64_t b = e / 60, h = e / 20 % 3, i = e / 5 % 4, x = e % 5;
    if (e != skip)
      put(r.out, b, h, i, x, load_element(p.q.data, static_cast<DType>(p.q.dtype), offset_in(p.q, b, h, i, x)));
    if (r.lse.data != nullptr) put(r.lse, b, h, i, 0, 0.0);
  }
  return ATTEST_OK;
}

std::string all_in(std::string_view layout) {
  std::string text;
  for (const std::string tensor : {"q", "k", "v", "mask"}) text += tensor + "=" + std::string(layout) + " ";
  if (is_for_outputs(named<MemoryLayout>(layout).value()))
    text += "out=" + std::string(layout) + " lse=" + std::string(layout);
  return text;
}

TEST(FunctionKernelStrides, BringTheValuesAndPoisonBetweenThem) {
  for (const DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16, DType::f8_e4m3, DType::f8_e5m2}) {
    for (int i = 1; i < static_cast<int>(MemoryLayout::count); ++i) {
      const auto layout = static_cast<MemoryLayout>(i);
      const Reply reply = reply_of(
          all_in(name_of(layout)),
          [&](const attest_problem& p, attest_result& r, std::string&) {
            const Case c = small_case(dtype);
            EXPECT_EQ(gather(p.q), c.q());
            EXPECT_EQ(gather(p.k), c.k());
            EXPECT_EQ(gather(p.v), c.v());
            EXPECT_EQ(gather(p.mask), c.mask());
            const attest_tensor view = c.q().view();
            const Placement expected = place(layout, view);
            EXPECT_TRUE(std::equal(expected.stride.begin(), expected.stride.end(), p.q.stride)) << name_of(layout);
            const auto poisoned = [&](const attest_tensor& t, std::int64_t offset) {
              return std::isnan(load_element(t.data, dtype, offset));
            };
            EXPECT_TRUE(layout != MemoryLayout::padded_rows || poisoned(p.q, 5)) << "behind the first row";
            EXPECT_TRUE(layout != MemoryLayout::every_other || poisoned(p.v, 1));
            EXPECT_TRUE(layout != MemoryLayout::packed || poisoned(p.k, -1));
            return copy_q(p, r);
          },
          dtype);
      ASSERT_EQ(reply.status, CallStatus::ok) << name_of(layout) << ": " << reply.message;
      EXPECT_EQ(reply.out, small_case(dtype).q()) << name_of(layout) << " " << name_of(dtype);
    }
  }
}

TEST(FunctionKernelStrides, PutInputsOfTheSameBitsInTheSameMemory) {
  // k and v hold the same; q has another shape.
  const auto together = [](const std::string& layouts, bool write = false) {
    bool same = false;
    const Reply reply = reply_of(layouts, [&](const attest_problem& p, attest_result& r, std::string&) {
      same = p.k.data == p.v.data;
      EXPECT_EQ(gather(p.k), small_case().k());
      EXPECT_EQ(gather(p.v), small_case().v());
      EXPECT_NE(p.q.data, p.k.data);
      if (write) put(p.v, 0, 0, 0, 0, 5.0);
      return copy_q(p, r);
    });
    EXPECT_EQ(reply.message, write ? "wrote to its input k; inputs are read-only" : "");
    return same;
  };
  EXPECT_TRUE(together("v=aliased"));
  EXPECT_TRUE(together("q=aliased k=aliased v=aliased"));
  EXPECT_TRUE(together("v=aliased", /*write=*/true));
  EXPECT_FALSE(together("k=aliased"));
  EXPECT_FALSE(together("k=packed v=aliased"));
  EXPECT_FALSE(together(""));
}

TEST(FunctionKernelStrides, KeepTheAlignmentThatIsAskedFor) {
  for (const std::int64_t alignment : {0, 16, 128}) {
    const Reply reply = reply_of(
        all_in("shifted"),
        [&](const attest_problem& p, attest_result& r, std::string&) {
          const auto bytes = static_cast<std::uintptr_t>(alignment == 0 ? 4 : alignment);
          for (const attest_tensor& t : {p.q, p.k, p.v, r.out}) {
            const auto address = reinterpret_cast<std::uintptr_t>(t.data);
            EXPECT_EQ(address % bytes, 0U);
            EXPECT_NE(address % (2 * bytes), 0U) << "no better than asked for";
          }
          return copy_q(p, r);
        },
        DType::f32, alignment);
    EXPECT_EQ(reply.status, CallStatus::ok) << reply.message;
  }
}

TEST(FunctionKernelStrides, ShowWhoKeepsAnOffsetInThirtyTwoBits) {
  if (far_elements < std::int64_t{1} << 32) GTEST_SKIP() << "the address sanitizer's memory reaches less far";
  for (const std::string_view layout : {"far-rows", "far-heads"}) {
    const auto narrow = [](const attest_problem& p, attest_result& r, std::string&) {
      for (std::int64_t e = 0; e < 120; ++e) {
        const std::int64_t b = e / 60, h = e / 20 % 3, i = e / 5 % 4, x = e % 5;
        const auto offset = static_cast<std::uint32_t>(offset_in(p.q, b, h, i, x));
        put(r.out, b, h, i, x, load_element(p.q.data, static_cast<DType>(p.q.dtype), offset));
        if (r.lse.data != nullptr) put(r.lse, b, h, i, 0, 0.0);
      }
      return ATTEST_OK;
    };
    const Reply reply = reply_of(fmt::format("q={}", layout), narrow);
    ASSERT_EQ(reply.status, CallStatus::ok) << reply.message;
    EXPECT_NE(reply.out, small_case().q()) << layout;
  }
}

TEST(FunctionKernelStrides, SeeWritesBesideElementsThatLieFarApart) {
  for (const std::string_view layout : {"far-rows", "far-heads"}) {
    const auto beside = [&](const char* tensor, std::int64_t at) {
      return reply_of(fmt::format("{}={}", tensor, layout),
                      [&](const attest_problem& p, attest_result& r, std::string&) {
                        const int status = copy_q(p, r);
                        const attest_tensor& t = tensor == std::string_view("q") ? p.q : r.out;
                        store_element(t.data, DType::f32, offset_in(t, 1, 2, 3, 4) + at, 1.0);
                        return status;
                      })
          .message;
    };
    EXPECT_THAT(beside("q", 1), Says("wrote into the gaps of q")) << layout;
    EXPECT_THAT(beside("out", 16), Says("wrote into the gaps of out")) << layout;
    EXPECT_THAT(beside("q", 0), Says("wrote to its input q")) << layout;
  }
}

TEST(FunctionKernelStrides, NameTheElementThatIsLeftUnwritten) {
  for (const std::string_view layout :
       {"token-major", "packed", "padded-rows", "every-other", "column-major", "far-rows", "far-heads"}) {
    const Reply reply = reply_of(all_in(layout), [](const attest_problem& p, attest_result& r, std::string&) {
      return copy_q(p, r, /*skip=*/37);
    });
    EXPECT_EQ(reply.message, "left 1 of 120 elements of out [2, 3, 4, 5] unwritten, the first at flat index 37");
  }
}

/// The message for a byte changed at `offset` elements from the first one of what `tensor` picks.
std::string changed(const std::string& strides, bool output, std::int64_t offset) {
  const Reply reply = reply_of(strides, [&](const attest_problem& p, attest_result& r, std::string&) {
    copy_q(p, r);
    const attest_tensor& t = output ? r.out : p.q;
    static_cast<std::byte*>(t.data)[4 * offset + 1] = std::byte{1};
    return ATTEST_OK;
  });
  EXPECT_EQ(reply.status, CallStatus::failed);
  return reply.message;
}

TEST(FunctionKernelStrides, NameTheGapThatIsWritten) {
  EXPECT_EQ(changed("out=padded-rows", true, 6),
            "wrote into the gaps of out: byte 5 behind its element 4 (flat index) changed");
  EXPECT_EQ(changed("q=packed", false, 15),
            "wrote into the gaps of q: byte 1 behind its element 44 (flat index) changed");
  EXPECT_EQ(changed("out=packed", true, -1), "wrote outside the tensors: byte 3 before the start of out changed");
  EXPECT_EQ(changed("out=every-other", true, 239), "wrote outside the tensors: byte 1 after the end of out changed");
  EXPECT_EQ(changed("q=column-major", false, 3), "wrote to its input q; inputs are read-only");
}

TEST(WideKernelStrides, GiveTheSameNumbers) {
  for (const KernelEntry& entry : core_kernels()) {
    const auto kernel = entry.make();
    if (!kernel->is_wide()) continue;
    Case c = small_case(DType::f64);
    c[Slot::mask] = Tensor();
    const Values dense = kernel->run(c, std::nullopt, false).out;
    c.provenance.strides = all_in("packed");
    const Values strided = kernel->run(c, std::nullopt, false).out;
    ASSERT_TRUE(strided.is<Enclosures>());
    ASSERT_EQ(strided.elements(), 120);
    for (std::int64_t e = 0; e < 120; ++e) {
      EXPECT_EQ(strided.enclosure(e).lower, dense.enclosure(e).lower) << entry.id;
      EXPECT_EQ(strided.enclosure(e).upper, dense.enclosure(e).upper) << entry.id;
    }
  }
}

}  // namespace
}  // namespace attest
