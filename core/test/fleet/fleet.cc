#include "core/test/fleet/fleet.h"

#include <string>
#include <utility>

namespace attest::fleet {
namespace {

/// One line per member: a name, its input dtype, what it changes.
template <class Change>
Emulation member(std::string name, DType input, Change change) {
  Emulation kernel{std::move(name), plain(input), {}, {}};
  change(kernel.arithmetic, kernel.structure);
  return kernel;
}

void flash(Arithmetic& a, std::int64_t block) {
  a.block = block;
  a.dropout = DropoutPlace::output;
  a.slopes = SlopeForm::column;
  a.descale = DescalePlace::products;
  a.weights = a.input;
}
void folded(Arithmetic& a) {
  a.slopes = SlopeForm::column_divided;
  a.base2 = true;
  a.folded_exp2 = true;
}
void lse_splits(Arithmetic& a, Structure& s, std::int64_t splits, Merge merge) {
  a.lse_of_columns = true;
  a.split_merge = true;
  s.splits = splits;
  s.merge = merge;
}
void reciprocal(Arithmetic& a, Structure& s) {
  a.division_roundings = 2;
  s.reciprocal = true;
}

void add_f64(std::vector<Emulation>& fleet) {
  const auto f64 = [&](std::string name, auto change) { fleet.push_back(member("f64." + name, DType::f64, change)); };
  f64("naive", [](Arithmetic&, Structure&) {});
  f64("online", [](Arithmetic& a, Structure&) { a.block = 1; });
  f64("flash.exp2", [](Arithmetic& a, Structure&) { flash(a, 64), folded(a); });
  f64("split5.lse", [](Arithmetic& a, Structure& s) { lse_splits(a, s, 5, Merge::lse); });
  f64("pairwise.perm", [](Arithmetic&, Structure& s) { s.permuted_pairwise = true; });
}

void add_f32(std::vector<Emulation>& fleet) {
  const auto f32 = [&](std::string name, auto change) { fleet.push_back(member("f32." + name, DType::f32, change)); };
  f32("naive2pass", [](Arithmetic&, Structure&) {});
  f32("normalise1st", [](Arithmetic& a, Structure& s) { a.normalise_first = true, reciprocal(a, s); });
  f32("flash.b64.exp2fast", [](Arithmetic& a, Structure& s) {
    flash(a, 64), folded(a);
    a.exp_ulp = 2;
    a.tanh = {TanhMeasure::relative, 0x1p-11};
    s.exp_errs = true;
  });
  f32("flash.b16.base2", [](Arithmetic& a, Structure& s) {
    flash(a, 16), reciprocal(a, s);
    a.base2 = true;
    s.dot = Dot::fused;
    s.fused_values = true;
  });
  f32("flash.ftz", [](Arithmetic& a, Structure&) {
    flash(a, 64);
    a.flushes_subnormals = a.flushes_inputs = true;
  });
  f32("nomax", [](Arithmetic& a, Structure&) { a.max = MaxPolicy::none, a.descale = DescalePlace::sums; });
  f32("tanh.absolute", [](Arithmetic& a, Structure& s) {
    a.tanh = {TanhMeasure::absolute, 0x1p-16};
    a.dropout = DropoutPlace::values;
    s.exp_errs = true;
  });
  f32("nomax.exp2", [](Arithmetic& a, Structure&) { a.max = MaxPolicy::none, a.base2 = true; });
  f32("online.perkey", [](Arithmetic& a, Structure&) { a.block = 1; });
  f32("pairwise.perm", [](Arithmetic&, Structure& s) { s.permuted_pairwise = true, s.dot = Dot::tiles; });
  f32("pairwise.declared", [](Arithmetic& a, Structure& s) {
    s.permuted_pairwise = true;
    a.blocked_sums = BlockedSums{.block = 1, .depth = 1, .pairwise = true};
  });
  f32("split5.lse", [](Arithmetic& a, Structure& s) { lse_splits(a, s, 5, Merge::lse); });
  f32("split6.lse.divfree", [](Arithmetic& a, Structure& s) { lse_splits(a, s, 6, Merge::lse_division_free); });
  f32("split3.lse.folded",
      [](Arithmetic& a, Structure& s) { flash(a, 32), folded(a), lse_splits(a, s, 3, Merge::lse); });
  f32("split7.ml", [](Arithmetic& a, Structure& s) {
    a.block = 32;
    a.split_merge = true;
    s.splits = 7;
  });
  f32("split64.perkey", [](Arithmetic& a, Structure& s) { a.block = 1, lse_splits(a, s, 64, Merge::lse); });
  f32("tc-rz", [](Arithmetic& a, Structure& s) {
    flash(a, 16);
    a.rounding = Rounding::toward_zero;
    s.dot = Dot::fused;
    s.fused_values = true;
  });
  f32("lazy8", [](Arithmetic& a, Structure&) {
    flash(a, 64);
    a.max = MaxPolicy::lazy;
    a.lazy_nats = 8;
  });
  f32("lazy4.folded", [](Arithmetic& a, Structure&) {
    flash(a, 8), folded(a);
    a.max = MaxPolicy::lazy;
    a.lazy_nats = 4;
  });
  f32("prescaled", [](Arithmetic& a, Structure&) { a.prescaled_q = DType::f32; });
  f32("stored.f16", [](Arithmetic& a, Structure&) { a.stored_biased = DType::f16; });
}

void add_bf16(std::vector<Emulation>& fleet) {
  const auto bf16 = [&](std::string name, auto change) {
    fleet.push_back(member("bf16." + name, DType::bf16, change));
  };
  bf16("flash.b64", [](Arithmetic& a, Structure&) { flash(a, 64); });
  bf16("flash.exp2.denominator", [](Arithmetic& a, Structure&) {
    flash(a, 32), folded(a);
    a.weights_in_denominator = true;
  });
  bf16("flash.tc-rz.b16", [](Arithmetic& a, Structure& s) {
    flash(a, 16);
    a.rounding = Rounding::toward_zero;
    s.dot = Dot::fused;
    s.fused_values = true;
  });
  bf16("unfused", [](Arithmetic& a, Structure&) {
    a.weights = DType::bf16;
    a.stored_biased = a.stored_capped = DType::bf16;
    a.normalise_first = true;
    a.dropout = DropoutPlace::values;
  });
  bf16("unfused.xts", [](Arithmetic& a, Structure&) {
    a.weights = DType::bf16;
    a.stored_raw = a.stored_scaled = a.stored_biased = DType::bf16;
  });
  bf16("prescaled.bf16", [](Arithmetic& a, Structure&) {
    flash(a, 64);
    a.prescaled_q = DType::bf16;
  });
  bf16("lazy8", [](Arithmetic& a, Structure&) {
    flash(a, 64);
    a.descale = DescalePlace::sums;
    a.max = MaxPolicy::lazy;
    a.lazy_nats = 8;
  });
  bf16("split4.lse", [](Arithmetic& a, Structure& s) { flash(a, 64), lse_splits(a, s, 4, Merge::lse); });
}

void add_f16(std::vector<Emulation>& fleet) {
  const auto f16 = [&](std::string name, auto change) { fleet.push_back(member("f16." + name, DType::f16, change)); };
  f16("flash.b64", [](Arithmetic& a, Structure&) { flash(a, 64); });
  f16("flash.exp2.ftz", [](Arithmetic& a, Structure&) {
    flash(a, 64), folded(a);
    a.flushes_subnormals = true;
  });
  f16("all-f16", [](Arithmetic& a, Structure&) { a.score_sums = a.accumulate = a.weights = DType::f16; });
  f16("all-f16.flash", [](Arithmetic& a, Structure& s) {
    a.score_sums = a.accumulate = a.weights = DType::f16;
    a.block = 16;
    s.fused_values = true;
  });
  f16("split4.f32out", [](Arithmetic& a, Structure& s) {
    flash(a, 64), lse_splits(a, s, 4, Merge::lse);
    a.output = DType::f32;
  });
  f16("lazy4", [](Arithmetic& a, Structure&) {
    flash(a, 64);
    a.descale = DescalePlace::sums;
    a.max = MaxPolicy::lazy;
    a.lazy_nats = 4;
  });
  f16("prescaled.f16", [](Arithmetic& a, Structure&) {
    flash(a, 64);
    a.prescaled_q = DType::f16;
  });
  f16("mask.bf16", [](Arithmetic& a, Structure&) {
    flash(a, 64);
    a.mask_format = DType::bf16;
  });
  f16("stored.scaled.f16", [](Arithmetic& a, Structure&) {
    a.weights = DType::f16;
    a.stored_scaled = a.stored_capped = DType::f16;
    a.dropout = DropoutPlace::values;
  });
}

/// A flash kernel of the dtype, as the table of error-bounds.md 3.4 has it.
Emulation control(DType input) {
  return member("control", input, [](Arithmetic& a, Structure&) { flash(a, 16), folded(a); });
}

}  // namespace

Arithmetic plain(DType input) {
  Arithmetic a;
  const DType sums = input == DType::f64 ? DType::f64 : DType::f32;
  a.input = a.output = input;
  a.score_sums = a.accumulate = a.weights = sums;
  a.exp_ulp = 1;
  a.base2 = a.folded_exp2 = a.split_merge = a.normalise_first = false;
  a.bias_in_sum = false;
  a.division_roundings = 1;
  a.block = 0;
  a.tanh = {TanhMeasure::ulp, 2.5};
  a.dropout = DropoutPlace::weights;
  a.descale = DescalePlace::inputs;
  return a;
}

std::vector<Emulation> correct_kernels() {
  std::vector<Emulation> fleet;
  add_f64(fleet);
  add_f32(fleet);
  add_bf16(fleet);
  add_f16(fleet);
  return fleet;
}

std::vector<Broken> broken_kernels() {
  std::vector<Broken> table;
  const Size small{1, 16, 16, 8};
  const Size medium{1, 128, 64, 8};
  const auto add = [&](std::string name, DType input, Regime probe, Size size, double flagged, auto breaks) {
    Emulation does = control(input);
    const Arithmetic declares = does.arithmetic;
    does.name = std::string(attest::name_of(input)) + " " + name;
    breaks(does);
    // A kernel may be broken in a format that it declares truthfully.
    Arithmetic claim = declares;
    claim.output = does.arithmetic.output;
    table.push_back({std::move(does), claim, probe, size, flagged});
  };
  const auto in_each = [&](std::string name, Regime probe, Size size, double flagged, auto breaks) {
    for (const DType input : {DType::f32, DType::f16, DType::bf16}) add(name, input, probe, size, flagged, breaks);
  };
  in_each("scale*1.01", Regime::low_weight, small, 1, [](Emulation& k) { k.fault.scale_factor = 1.01; });
  in_each("drops the last key", Regime::near_ties, small, 1, [](Emulation& k) { k.fault.drops_last_key = true; });
  in_each("leaks 1e-4 of a hidden key", Regime::leak, small, 1, [](Emulation& k) { k.fault.leak = 1e-4; });
  // One case in eight has its maximum in the first block: nothing to rescale.
  in_each("forgets to rescale", Regime::dominant, medium, 0.8, [](Emulation& k) { k.fault.forgets_rescale = true; });
  // Scores up to 88 need no maximum, and f16 cannot hold the keys for larger ones at every draw.
  in_each("no maximum", Regime::offset, small, 0.9, [](Emulation& k) { k.arithmetic.max = MaxPolicy::none; });
  in_each("stores scores in bf16", Regime::offset, small, 1,
          [](Emulation& k) { k.arithmetic.stored_biased = DType::bf16; });
  in_each("sums scores in bf16", Regime::offset, small, 1, [](Emulation& k) { k.arithmetic.score_sums = DType::bf16; });
  in_each("sums weights and values in bf16", Regime::stagnation, {1, 4096, 4, 2}, 1,
          [](Emulation& k) { k.arithmetic.accumulate = DType::bf16; });
  in_each("rounds weights to e4m3", Regime::low_weight, small, 1,
          [](Emulation& k) { k.arithmetic.weights = DType::f8_e4m3; });
  // 3.5e-6 is close to what f32 may do: a median ratio of 2.
  add("log2(e) = 1.4427", DType::f32, Regime::low_weight, small, 0.9, [](Emulation& k) { k.fault.log2e = 1.4427; });
  add("exp errs by 1e-4", DType::f32, Regime::low_weight, small, 1, [](Emulation& k) { k.fault.exp_error = 1e-4; });
  add("sums in f16, out in f32", DType::f16, Regime::low_weight, small, 0.9, [](Emulation& k) {
    k.arithmetic.score_sums = k.arithmetic.accumulate = DType::f16;
    k.arithmetic.output = DType::f32;
  });
  add("scale*(1 + 2^-40)", DType::f64, Regime::low_weight, small, 1,
      [](Emulation& k) { k.fault.scale_factor = 1 + 0x1p-40; });
  add("sums in f32", DType::f64, Regime::gauss_1, small, 1, [](Emulation& k) { k.arithmetic.accumulate = DType::f32; });
  return table;
}

}  // namespace attest::fleet
