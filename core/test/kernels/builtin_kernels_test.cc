// The built-in kernels: every form of problem against the definition written out in long double, and what they claim,
// bit by bit. How accurate they are to the last bit is the business of bound_validation_test.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <ostream>
#include <random>
#include <string>
#include <vector>

#include "core/kernel/kernel_under_test.h"
#include "core/kernels/builtin.h"
#include "core/support/infinity.h"
#include "core/test/cases.h"
#include "core/test/names.h"
#include "core/test/reference_attention.h"

namespace attest {

/// How GoogleTest prints a parameter.
static void PrintTo(const KernelEntry& entry, std::ostream* out) {
  *out << entry.id;
}

namespace {

enum class MaskKind { none, boolean, additive };

struct Form {
  std::int64_t batch, heads, kv_heads, M, N, dk, dv;
  MaskKind mask = MaskKind::none;
  bool broadcast_mask = false;
  MaskConvention convention = MaskConvention::post_scale;
  Causal causal = Causal::none;
  bool masked_start = false;  ///< the mask hides the first half of the keys from every row
};

std::string describe(const Form& f) {
  return "batch " + std::to_string(f.batch) + " heads " + std::to_string(f.heads) + "/" + std::to_string(f.kv_heads) +
         " M " + std::to_string(f.M) + " N " + std::to_string(f.N) + " mask " +
         std::to_string(static_cast<int>(f.mask)) + " convention " + std::string(name_of(f.convention)) + " causal " +
         std::string(name_of(f.causal));
}

const std::vector<Form> forms{
    {1, 1, 1, 1, 1, 1, 1},
    {2, 4, 2, 5, 37, 3, 7},
    {1, 2, 1, 3, 130, 8, 2, MaskKind::additive, false},
    {2, 2, 2, 4, 33, 5, 3, MaskKind::additive, true, MaskConvention::pre_scale},
    {2, 3, 1, 6, 40, 4, 4, MaskKind::boolean, false, MaskConvention::post_scale, Causal::bottom_right},
    {1, 1, 1, 9, 5, 2, 2, MaskKind::none, false, MaskConvention::post_scale, Causal::bottom_right},
    {1, 2, 2, 9, 5, 2, 2, MaskKind::boolean, true, MaskConvention::pre_scale, Causal::top_left},
    {1, 1, 1, 4, 100, 4, 4, MaskKind::additive, false, MaskConvention::post_scale, Causal::none, true},
    {1, 1, 1, 4, 100, 4, 4, MaskKind::boolean, false, MaskConvention::pre_scale, Causal::none, true},
    {1, 2, 1, 0, 3, 2, 2},
    {1, 2, 1, 3, 0, 2, 2},
};

Case case_of(const Form& f, DType dtype, unsigned seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  Case c = test::attention_of(
      {.batch = f.batch, .heads = f.heads, .queries = f.M, .keys = f.N, .dk = f.dk, .dv = f.dv, .kv_heads = f.kv_heads},
      [&](Slot, const Shape& shape) { return test::filled(dtype, shape, [&] { return normal(random); }); });
  c.scale = 1.0 / std::sqrt(static_cast<double>(f.dk)) * 1.25;
  c.mask_convention = f.convention;
  c.causal = f.causal;
  if (f.mask != MaskKind::none) {
    const bool boolean = f.mask == MaskKind::boolean;
    const Shape shape = f.broadcast_mask ? Shape{1, 1, f.M, f.N} : Shape{f.batch, f.heads, f.M, f.N};
    Tensor& mask = c[Slot::mask] = Tensor(boolean ? DType::boolean : dtype, shape);
    for (std::int64_t i = 0; i < mask.elements(); ++i) {
      const bool hidden = random() % 3 == 0 || (f.masked_start && i % f.N < f.N / 2);
      mask.set(i, boolean ? (hidden ? 0.0 : 1.0) : (hidden ? -infinity : normal(random)));
    }
  }
  return c;
}

/// Enough to tell a wrong formula from a right one on these inputs, all of size 1; out is rounded once to the dtype.
double tolerance(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return 0x1p-45;
    case DType::f32:
      return 0x1p-17;
    default:
      return 4 * format_of(dtype).unit;
  }
}

class BuiltinKernels : public testing::TestWithParam<KernelEntry> {
 protected:
  std::unique_ptr<Kernel> kernel = GetParam().make();

  /// k and v in the formats that the kernel takes beside q's.
  [[nodiscard]] Case in_its_formats(Case c) const {
    const KvDtypes formats = kernel->manifest().kv_dtypes_for(c.dtype()).front();
    const auto rounded = [](const Tensor& from, DType to) {
      Tensor tensor(to, from.shape());
      for (std::int64_t e = 0; e < tensor.elements(); ++e) tensor.set(e, from[e]);
      return tensor;
    };
    c[Slot::k] = rounded(c.k(), formats.k);
    c[Slot::v] = rounded(c.v(), formats.v);
    return c;
  }

  Reply run(const Case& c) {
    Reply reply = kernel->run(c, c.dtype(), true);
    EXPECT_EQ(reply.status, CallStatus::ok) << reply.message;
    return reply;
  }
};

TEST_P(BuiltinKernels, ComputeTheDefinitionInEveryForm) {
  for (const DType dtype : kernel->manifest().dtypes) {
    for (const Form& form : forms) {
      const Case c = in_its_formats(case_of(form, dtype, 7));
      validate(c);
      ASSERT_EQ(why_unsupported(kernel->manifest(), c), "");
      const Reply reply = run(c);
      ASSERT_EQ(reply.out.shape(), c.out_shape());
      std::int64_t at = 0;
      for (std::int64_t row = 0; row < form.batch * form.heads * form.M; ++row) {
        const test::ReferenceRow<long double> expected =
            test::reference_row<long double>(c, row / form.M / form.heads, row / form.M % form.heads, row % form.M);
        const bool no_key = std::isinf(expected.lse);
        const bool nan = no_key && kernel->manifest().fully_masked_row == FullyMaskedRow::nan;
        if (nan) {
          EXPECT_TRUE(std::isnan(reply.lse[row])) << describe(form);
        } else if (no_key) {
          EXPECT_EQ(reply.lse[row], -infinity) << describe(form);
        } else {
          EXPECT_NEAR(reply.lse[row], static_cast<double>(expected.lse),
                      16 * tolerance(dtype == DType::f64 ? dtype : DType::f32));
        }
        for (std::int64_t d = 0; d < form.dv; ++d, ++at) {
          if (nan) {
            EXPECT_TRUE(std::isnan(reply.out[at])) << describe(form);
          } else if (no_key) {
            EXPECT_EQ(reply.out[at], 0.0) << describe(form);
          } else {
            EXPECT_NEAR(reply.out[at], static_cast<double>(expected.out[static_cast<std::size_t>(d)]),
                        4 * tolerance(dtype))
                << name_of(dtype) << " " << describe(form) << " row " << row << " column " << d;
          }
        }
      }
    }
  }
}

TEST_P(BuiltinKernels, IgnoreWhatHiddenKeysAndValuesContain) {
  for (const DType dtype : kernel->manifest().dtypes) {
    Case c = case_of({1, 1, 1, 3, 70, 4, 4, MaskKind::boolean}, dtype, 3);
    for (std::int64_t i = 0; i < 3; ++i) {
      for (std::int64_t j = 0; j < 70; ++j) c[Slot::mask].set(i * 70 + j, j % 3 == 0 || j < 33 ? 0.0 : 1.0);
    }
    const Reply clean = run(c);
    for (const double poison : {std::numeric_limits<double>::quiet_NaN(), infinity}) {
      for (std::int64_t j = 0; j < 70; ++j) {
        if (c.mask()[j] != 0) continue;
        for (std::int64_t d = 0; d < 4; ++d) {
          c[Slot::k].set(j * 4 + d, poison);
          c[Slot::v].set(j * 4 + d, poison);
        }
      }
      const Reply dead = run(c);
      EXPECT_EQ(clean.out, dead.out) << name_of(dtype);
      EXPECT_EQ(clean.lse, dead.lse) << name_of(dtype);
    }
  }
}

/// The rows [begin, end) of the last-but-one axis, of every head.
Tensor rows_of(const Tensor& t, std::int64_t begin, std::int64_t end) {
  attest_tensor view = t.view();
  const auto size = static_cast<std::int64_t>(size_of(t.dtype()));
  view.data = static_cast<std::byte*>(view.data) + begin * view.stride[2] * size;
  view.shape[2] = end - begin;
  return gather(view);
}

TEST_P(BuiltinKernels, ARowDoesNotDependOnItsCompany) {
  for (const DType dtype : kernel->manifest().dtypes) {
    const Case c = case_of({2, 2, 1, 5, 50, 4, 3}, dtype, 11);
    const Reply all = run(c);
    Case one = c;
    one[Slot::q] = rows_of(c.q(), 3, 4);
    EXPECT_EQ(run(one).out, rows_of(all.out, 3, 4)) << name_of(dtype);
  }
}

TEST_P(BuiltinKernels, PaddingChangesNothingWhereClaimed) {
  bool changed = false;
  for (const DType dtype : kernel->manifest().dtypes) {
    const Case c = case_of({1, 2, 2, 3, 37, 4, 3, MaskKind::additive}, dtype, 5);
    for (const std::int64_t longer : {38, 48, 64, 101}) {
      Case padded = case_of({1, 2, 2, 3, longer, 4, 3}, dtype, 6);
      padded.scale = c.scale;
      padded[Slot::q] = c.q();
      padded[Slot::mask] = Tensor(dtype, {1, 2, 3, longer});
      for (std::int64_t h = 0; h < 2; ++h) {
        for (std::int64_t j = 0; j < longer; ++j) {
          for (std::int64_t i = 0; i < 3; ++i) {
            padded[Slot::mask].set((h * 3 + i) * longer + j, j < 37 ? c.mask()[(h * 3 + i) * 37 + j] : -infinity);
          }
          if (j >= 37) continue;
          for (std::int64_t d = 0; d < 4; ++d)
            padded[Slot::k].set((h * longer + j) * 4 + d, c.k()[(h * 37 + j) * 4 + d]);
          for (std::int64_t d = 0; d < 3; ++d)
            padded[Slot::v].set((h * longer + j) * 3 + d, c.v()[(h * 37 + j) * 3 + d]);
        }
      }
      changed = changed || run(padded).out != run(c).out;
    }
  }
  // Split-k is the one that does not claim it, and would be wrong to.
  EXPECT_EQ(changed, !kernel->manifest().claims_to(Claim::padding_invariant));
}

/// The elements of `from` laid out as [batch, rows, heads, columns] in memory, every other column left poisoned.
struct Spread {
  std::vector<std::byte> memory;
  attest_tensor view{};
  explicit Spread(const attest_tensor& from) : view(from) {
    const auto size = static_cast<std::int64_t>(size_of(static_cast<DType>(from.dtype)));
    view.stride[3] = 2;
    view.stride[1] = 2 * from.shape[3];
    view.stride[2] = view.stride[1] * from.shape[1];
    view.stride[0] = view.stride[2] * from.shape[2];
    memory.assign(static_cast<std::size_t>(view.stride[0] * from.shape[0] * size), std::byte{0xff});
    view.data = memory.data();
    for (std::int64_t b = 0; b < from.shape[0]; ++b) {
      for (std::int64_t h = 0; h < from.shape[1]; ++h) {
        for (std::int64_t i = 0; i < from.shape[2]; ++i) {
          for (std::int64_t d = 0; d < from.shape[3]; ++d) {
            std::memcpy(memory.data() + offset_in(view, b, h, i, d) * size,
                        static_cast<const std::byte*>(from.data) + offset_in(from, b, h, i, d) * size,
                        static_cast<std::size_t>(size));
          }
        }
      }
    }
  }
};

TEST(BuiltinKernel, ReadsAndWritesAnyStrides) {
  for (const BuiltinKernel& builtin : all_builtins()) {
    for (const DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
      const Case c = case_of({2, 2, 1, 3, 20, 4, 3, MaskKind::additive}, dtype, 9);
      std::string message;
      attest_problem problem = c.problem();
      attest_result result{sizeof(attest_result), {}, {}};
      Tensor out(dtype, c.out_shape());
      result.out = out.view();
      ASSERT_EQ(run_builtin(builtin, problem, result, message), ATTEST_OK);

      Spread q(problem.q), k(problem.k), v(problem.v), mask(problem.mask), strided(result.out);
      problem.q = q.view;
      problem.k = k.view;
      problem.v = v.view;
      problem.mask = mask.view;
      result.out = strided.view;
      ASSERT_EQ(run_builtin(builtin, problem, result, message), ATTEST_OK);
      EXPECT_EQ(gather(result.out), out) << builtin.name << " " << name_of(dtype);
      for (std::int64_t i = 0; i < out.elements(); ++i) {
        const auto size = static_cast<std::size_t>(size_of(dtype));
        const std::byte unused = strided.memory[(2 * static_cast<std::size_t>(i) + 1) * size];
        ASSERT_EQ(unused, std::byte{0xff}) << "wrote between the columns";
      }
    }
  }
}

TEST(BuiltinKernel, ReadsAStrideOfZeroAsRepetition) {
  for (const BuiltinKernel& builtin : all_builtins()) {
    const Case c = case_of({1, 2, 1, 3, 20, 4, 3}, DType::f32, 9);
    std::string message;
    attest_problem problem = c.problem();
    Tensor out(DType::f32, c.out_shape());
    attest_result result{sizeof(attest_result), out.view(), {}};
    problem.q.stride[1] = 0;
    ASSERT_EQ(run_builtin(builtin, problem, result, message), ATTEST_OK);
    for (std::int64_t i = 0; i < 9; ++i) EXPECT_EQ(out[i], out[9 + i]) << builtin.name;
  }
}

TEST(BuiltinKernel, RefusesOtherDtypesByName) {
  Case c = case_of({1, 1, 1, 1, 2, 2, 2}, DType::f8_e4m3, 1);
  const auto kernel = builtin_kernels().front().make();
  EXPECT_EQ(kernel->run(c).status, CallStatus::unsupported);
}

INSTANTIATE_TEST_SUITE_P(All, BuiltinKernels, testing::ValuesIn(builtin_kernels()), [](const auto& entry) {
  return test::name_of_test(entry.param.id.substr(entry.param.id.find(':') + 1));
});

}  // namespace
}  // namespace attest
