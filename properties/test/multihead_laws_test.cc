// Every theorem about weights, self-attention, positions and heads goes red for some kernel that breaks it. Each fault
// is a mistake that multi-head code can make; which of them breaks which theorem is printed, and a theorem that none
// breaks fails the test.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iostream>
#include <limits>
#include <set>
#include <string>

#include "arrange.h"
#include "property.h"
#include "selection.h"
#include "tampered.h"

namespace attest {
namespace {

/// The definition in double, asked and answered by way of a fault.
class Spoilt : public Kernel {
 public:
  using Fault = std::function<Reply(Kernel&, Case, DType, bool)>;
  explicit Spoilt(Fault fault) : kernel_(registered("core:double")), fault_(std::move(fault)) {}
  const std::string& id() const override { return kernel_->id(); }
  const Manifest& manifest() const override { return kernel_->manifest(); }
  Reply run(const Case& c, DType output, bool want_lse) override { return fault_(*kernel_, c, output, want_lse); }
  std::unique_ptr<Kernel> clone() const override { return std::make_unique<Spoilt>(fault_); }

 private:
  std::unique_ptr<Kernel> kernel_;
  Fault fault_;
};

/// Another question in the place of the one asked.
Spoilt::Fault asked(std::function<void(Case&)> change) {
  return [change = std::move(change)](Kernel& kernel, Case c, DType output, bool want_lse) {
    change(c);
    return kernel.run(c, output, want_lse);
  };
}
/// Each number of the answer changed: value(case, row, old).
Spoilt::Fault answered(std::function<double(const Case&, std::int64_t row, double old)> value) {
  return [value = std::move(value)](Kernel& kernel, const Case& c, DType output, bool want_lse) {
    Reply reply = kernel.run(c, output, want_lse);
    if (reply.status != CallStatus::ok || reply.out.elements() == 0) return reply;
    const Shape& shape = reply.out.shape();
    const std::int64_t columns = shape[shape.rank() - 1], rows = shape[shape.rank() - 2];
    reply.out = mapped(reply.out, [&](std::int64_t e, double old) { return value(c, e / columns % rows, old); });
    return reply;
  };
}
void add(Case& c, Slot slot, std::int64_t element, double amount) {
  if (c[slot].elements() > element) c[slot].set(element, c[slot][element] + amount);
}

struct NamedFault {
  const char* name;
  Spoilt::Fault fault;
};
const std::vector<NamedFault>& faults() {
  static const std::vector<NamedFault> all{
      {"counts rows", answered([](const Case& c, std::int64_t, double old) {
         return old * (1 + 0.01 * static_cast<double>(queries_of(c))) + 0.01 * static_cast<double>(queries_of(c));
       })},
      {"counts keys", answered([](const Case& c, std::int64_t, double old) {
         return old * (1 + 0.01 * static_cast<double>(keys_of(c))) + 0.01 * static_cast<double>(keys_of(c));
       })},
      {"numbers its rows",
       answered([](const Case&, std::int64_t row, double old) { return old + 0.5 * static_cast<double>(row); })},
      {"reads every query", answered([](const Case& c, std::int64_t, double old) {
         double sum = 0;
         for (std::int64_t e = 0; e < c.q().elements(); ++e) sum += c.q()[e] * 0;
         return old + sum;
       })},
      {"adds what every key holds", answered([](const Case& c, std::int64_t, double old) {
         double sum = 0;
         for (std::int64_t e = 0; e < c.v().elements(); ++e) sum += 0.01 * c.v()[e];
         return old + sum;
       })},
      {"is causal", asked([](Case& c) { c.causal = Causal::top_left; })},
      {"ignores masks", asked([](Case& c) { c[Slot::mask] = Tensor(); })},
      {"ignores b_v", asked([](Case& c) { c[Slot::b_v] = Tensor(); })},
      {"ignores b_o", asked([](Case& c) { c[Slot::b_o] = Tensor(); })},
      {"adds b_k to b_q", asked([](Case& c) {
         for (std::int64_t e = 0; e < c[Slot::b_k].elements(); ++e) add(c, Slot::b_q, e, c[Slot::b_k][e]);
       })},
      {"reads w_q one too large", asked([](Case& c) { add(c, Slot::w_q, 0, 1); })},
      {"scales twice where q is not k", asked([](Case& c) {
         if (!(c.q() == c.k())) c.scale *= 2;
       })},
      {"doubles where there are heads", answered([](const Case& c, std::int64_t, double old) {
         return c.operation == Operation::multihead && c.heads > 1 ? 2 * old : old;
       })},
      {"swaps the heads before w_o", asked([](Case& c) {
         Tensor& w = c[Slot::w_o];
         const Tensor old = w;
         for (std::int64_t e = 0; e < w.elements(); ++e) w.set(e, old[w.elements() - 1 - e]);
       })},
      {"forgets the appended key", asked([](Case& c) { c[Slot::bias_k] = c[Slot::bias_v] = Tensor(); })},
      {"hides in all heads what one hides", asked([](Case& c) {
         c = with_additive_mask(std::move(c));
         Tensor& mask = c[Slot::mask];
         const std::int64_t page = mask.shape()[2] * mask.shape()[3];
         for (std::int64_t e = 0; e < mask.elements(); ++e)
           for (std::int64_t h = 0; h < mask.shape()[1]; ++h) {
             const std::int64_t batch = e / page / mask.shape()[1];
             if (mask[(batch * mask.shape()[1] + h) * page + e % page] == -std::numeric_limits<double>::infinity())
               mask.set(e, -std::numeric_limits<double>::infinity());
           }
       })},
      {"answers 0", answered([](const Case&, std::int64_t, double) { return 0.0; })},
      {"answers 1", answered([](const Case&, std::int64_t, double) { return 1.0; })},
      {"doubles under a mask",
       answered([](const Case& c, std::int64_t, double old) { return c.mask().present() ? 2 * old : old; })},
      {"scales by sqrt(dv)", asked([](Case& c) {
         const Extents e = extents_of(c);
         c.scale *= std::sqrt(static_cast<double>(e.dk) / static_cast<double>(e.dv));
       })},
      {"squares its weights and renormalises them", asked([](Case& c) {
         c.scale *= 2;
         if (c.mask_convention == MaskConvention::pre_scale || c.mask().dtype() == DType::boolean) return;
         if (c.mask().present()) c[Slot::mask] = mapped(c.mask(), [](std::int64_t, double old) { return 2 * old; });
       })},
      {"reads the keys and values of batch entry 0", asked([](Case& c) {
         for (const Slot slot : {Slot::k, Slot::v}) {
           const std::int64_t entry = c[slot].elements() / std::max<std::int64_t>(1, batch_of(c));
           c[slot] = mapped(c[slot], [&, old = c[slot]](std::int64_t e, double) { return old[e % entry]; });
         }
       })},
      {"adds every mask after the scale", asked([](Case& c) { c.mask_convention = MaskConvention::post_scale; })},
      {"knows no causal form where dk is not dv", asked([](Case& c) {
         if (extents_of(c).dk != extents_of(c).dv) c.causal = Causal::none;
       })},
      {"gives no weight to what it hides by a number", asked([](Case& c) {
         if (c.mask().present() && c.mask().dtype() != DType::boolean)
           c[Slot::mask] = mapped(c.mask(), [](std::int64_t, double old) { return old < 0 ? old : 0; });
       })},
      {"answers 0 where a row sees nothing",
       answered([](const Case&, std::int64_t, double old) { return std::isnan(old) ? 0 : old; })},
      {"answers NaN where numbers are large",
       answered([](const Case&, std::int64_t, double old) { return std::fabs(old) > 1e30 ? NAN : old; })},
      {"reads its tokens where they would lie row-major", asked([](Case& c) {
         if (c.metadata.contains("strides")) c[Slot::q] = mapped(c.q(), [](std::int64_t, double old) { return -old; });
       })},
      {"doubles under a boolean mask", answered([](const Case& c, std::int64_t, double old) {
         return c.mask().present() && c.mask().dtype() == DType::boolean ? 2 * old : old;
       })},
      {"doubles under a pre-scale mask", answered([](const Case& c, std::int64_t, double old) {
         return c.mask_convention == MaskConvention::pre_scale ? 2 * old : old;
       })},
      {"doubles under a mask that heads share", answered([](const Case& c, std::int64_t, double old) {
         return c.heads > 1 && c.mask().present() && c.mask().shape()[1] == 1 ? 2 * old : old;
       })},
      {"doubles where there is one head", answered([](const Case& c, std::int64_t, double old) {
         return c.operation == Operation::multihead && c.heads == 1 && c[Slot::w_o].present() ? 2 * old : old;
       })}};
  return all;
}

/// Statements about the core's own functions (scores, a position table), which are not read from a kernel's answers, so
/// that no kernel can break them: core_laws_test.cc breaks the functions.
const std::set<std::string_view> about_the_core_alone{"self.bilinear-score", "self.scores-symmetric",
                                                      "position.length-limit"};

TEST(MultiheadLaws, each_goes_red_for_some_kernel) {
  constexpr std::int64_t cases = 60;
  for (const Property* property : catalogue()) {
    if (property->operation != Operation::multihead) continue;
    std::string red;
    for (const NamedFault& fault : faults()) {
      Spoilt kernel(fault.fault);
      for (std::int64_t k = 0; k < cases; ++k) {
        if (check_case(*property, kernel, generate(*property, DType::f64, 1, k)).outcome != Outcome::violated) continue;
        red += (red.empty() ? "" : "; ") + std::string(fault.name);
        break;
      }
    }
    std::cout << property->name << ": " << (red.empty() ? "none" : red) << "\n";
    EXPECT_EQ(red.empty(), about_the_core_alone.contains(property->name)) << property->name << ": " << red;
  }
}

/// Kernels that every law of symmetry holds for: they compute some function, and not the one of the documents.
TEST(MultiheadLaws, what_is_symmetric_and_wrong_is_violated) {
  for (const char* const name :
       {"scales by sqrt(dv)", "squares its weights and renormalises them", "reads the keys and values of batch entry 0",
        "adds every mask after the scale", "knows no causal form where dk is not dv"}) {
    const auto fault = std::ranges::find(faults(), std::string_view(name), &NamedFault::name);
    ASSERT_NE(fault, faults().end()) << name;
    for (const char* const oracle : {"multihead.oracle", "multihead.any-length"}) {
      const Property& property = *properties_matching(oracle).at(0);
      // The lengths are those of attention without a mask.
      const bool about_masks = std::string_view(name).find("mask") != std::string_view::npos ||
                               std::string_view(name).find("causal") != std::string_view::npos;
      if (about_masks && property.name == "multihead.any-length") continue;
      Spoilt kernel(fault->fault);
      int violated = 0;
      for (std::int64_t k = 0; k < 300; ++k)
        violated += check_case(property, kernel, generate(property, DType::f64, 1, k)).outcome == Outcome::violated;
      EXPECT_GE(violated, 5) << name << " by " << oracle;
    }
  }
}

TEST(MultiheadLaws, hold_for_the_definition) {
  Spoilt right(
      [](Kernel& kernel, const Case& c, DType output, bool want_lse) { return kernel.run(c, output, want_lse); });
  for (const Property* property : catalogue()) {
    if (property->operation != Operation::multihead) continue;
    int held = 0;
    for (std::int64_t k = 0; k < 60; ++k) {
      const Verdict verdict = check_case(*property, right, generate(*property, DType::f64, 1, k));
      EXPECT_NE(verdict.outcome, Outcome::violated) << property->name << " k = " << k << ": " << verdict.reason;
      held += verdict.outcome == Outcome::held;
    }
    EXPECT_GE(held, 20) << property->name << " is hardly ever judged";
  }
}

}  // namespace
}  // namespace attest
