# Copies headers of the core with faults planted in them: cmake -DINCLUDE=root -DOUT=folder -P plant.cmake
#
# The copies are the real templates with one expression at a time made a choice: the core's own text, or a deviation
# where the fault of that name is on. The core knows nothing of it. Each place must be found exactly once, so that a
# change of the core that moves it stops the build and not the check.

set(names "")

# plant(FILE BEFORE ORIGINAL AFTER NAME FAULTY [NAME FAULTY ...]): in FILE, the expression ORIGINAL between BEFORE and
# AFTER becomes "is NAME on? then FAULTY, else ORIGINAL".
function(plant file before original after)
  if(EXISTS "${OUT}/${file}")
    file(READ "${OUT}/${file}" text)
  else()
    file(READ "${INCLUDE}/${file}" text)
    string(REPLACE "#pragma once\n" "#pragma once\n#include \"planted.h\"\n" text "${text}")
  endif()
  string(FIND "${text}" "${before}${original}${after}" first)
  string(FIND "${text}" "${before}${original}${after}" last REVERSE)
  if(first EQUAL -1 OR NOT first EQUAL last)
    message(FATAL_ERROR "${file}: the place of a planted fault must occur exactly once:\n${before}${original}${after}")
  endif()
  set(choice "(${original})")
  set(at 4)
  while(at LESS ARGC)
    math(EXPR next "${at} + 1")
    set(choice "(::attest::test::planted(\"${ARGV${at}}\") ? (${ARGV${next}}) : ${choice})")
    list(APPEND names "${ARGV${at}}")
    math(EXPR at "${at} + 2")
  endwhile()
  set(names "${names}" PARENT_SCOPE)
  string(REPLACE "${before}${original}${after}" "${before}${choice}${after}" text "${text}")
  file(WRITE "${OUT}/${file}" "${text}")
endfunction()

file(REMOVE_RECURSE "${OUT}")
set(definitions core/definition/bodies)

# Scores.
plant(${definitions}/attention.h [[scale, mask.convention) : ]] [[T(scale * product)]] [[;]]
  scale-dropped [[product]]
  scale-applied-twice [[T(scale * (scale * product))]])
plant(${definitions}/attention.h [[adds && !mask.softcap ? ]] [[score<T>(product, (*mask.additive)(i, j), scale, mask.convention)]] [[ : ]]
  mask-added-twice [[T(score<T>(product, (*mask.additive)(i, j), scale, mask.convention) + (*mask.additive)(i, j))]]
  mask-not-added [[T(scale * product)]]
  mask-of-another-row [[score<T>(product, (*mask.additive)(0, j), scale, mask.convention)]]
  conventions-exchanged [[score<T>(product, (*mask.additive)(i, j), scale, MaskConvention::post_scale)]])
plant(${definitions}/attention.h [[s = ]] [[*mask.softcap * tanh_of(T(s / *mask.softcap))]] [[;]]
  cap-dropped [[s]]
  cap-without-its-factor [[tanh_of(T(s / *mask.softcap))]]
  cap-after-the-mask [[*mask.softcap * tanh_of(T((s + (adds ? T((*mask.additive)(i, j)) : T(s - s))) / *mask.softcap)) - (adds ? T((*mask.additive)(i, j)) : T(s - s))]])
plant(${definitions}/attention.h [[return s - ]] [[*mask.slope * ScalarTraits<T>::from_double(static_cast<double>(away))]] [[;]]
  slope-dropped [[(s - s)]]
  slope-added-to-the-score [[ScalarTraits<T>::from_double(-1.0) * *mask.slope * ScalarTraits<T>::from_double(static_cast<double>(away))]])
plant(${definitions}/attention.h [[away = std::abs(]] [[position(mask.positions, i, rows, covered)]] [[ - j)]]
  slope-from-the-first-key [[i]])
plant(${definitions}/attention.h [[score_of<T>(]] [[dot(q_i, row_of(k, j))]] [[, scale]]
  key-of-the-next-position [[dot(q_i, row_of(k, j + 1 < k.rows() ? j + 1 : j))]])
# Softmax.
plant(${definitions}/softmax.h [[e.terms(j) = ]] [[Traits::exp(x(j) - e.reference)]] [[;]]
  one-term-not-shifted [[Traits::exp(j == 1 ? x(j) : T(x(j) - e.reference))]])
plant(${definitions}/softmax.h [[e.sum = ]] [[e.empty ? e.terms(j) : T(e.sum + e.terms(j))]] [[;]]
  first-term-left-out-of-the-sum [[e.empty ? T(e.terms(j) - e.terms(j) + zero) : (j == 1 ? e.terms(j) : T(e.sum + e.terms(j)))]])
plant(${definitions}/softmax.h [[ScalarTraits<T>::undefined() : ]] [[T(e.terms(j) / e.sum)]] [[;]]
  not-normalised [[e.terms(j)]]
  weight-of-the-others [[T((e.terms(j) - e.sum) / e.sum)]])
# Attention.
plant(${definitions}/attention.h [[if (]] [[!(*mask.kept)(i, first + j)]] [[) {]]
  dropped-where-it-is-kept [[(*mask.kept)(i, first + j)]]
  kept-of-the-first-row [[!(*mask.kept)(0, first + j)]]
  kept-of-the-first-block [[!(*mask.kept)(i, j)]])
plant(${definitions}/attention.h [[weights(j) = ]] [[w(j) / *mask.kept_share]] [[;]]
  kept-and-not-divided [[w(j)]]
  kept-and-multiplied [[T(w(j) * *mask.kept_share)]])
plant(${definitions}/attention.h [[const Exponentials<T> e = ]] [[exponentials(s, mask.sink)]] [[;
    const std::span<T> o_i]]
  mask-after-the-softmax [[exponentials(score_row(q, k, scale, Mask<T>{}, i, 0, k.rows()), mask.sink)]])
plant(${definitions}/attention.h [[result.lse(i) = ]] [[e.reference + Traits::log(e.sum)]] [[;]]
  reference-left-out-of-the-log-sum-exp [[Traits::log(e.sum)]])
plant(${definitions}/attention.h [[const std::span<const T> v_j = ]] [[row_of(v, first + j)]] [[;]]
  values-of-the-first-block [[row_of(v, j)]])
plant(${definitions}/attention.h [[T sum = ]] [[Traits::from_double(0.0)]] [[;]]
  renormalised-over-all-keys [[[&] {
    T hidden = Traits::from_double(0.0);
    for (Index j = 0; j < k.rows(); ++j)
      if (!is_visible(mask, i, j, q.rows(), k.rows())) hidden = hidden + weights(i, j);
    return hidden;
  }()]])
plant(${definitions}/attention.h [[static_cast<std::size_t>(b * kv_heads + ]] [[h / (heads / kv_heads)]] [[);]]
  groups-interleaved [[h % kv_heads]])
# Merging.
plant(${definitions}/attention.h [[const T from_left = ]] [[Traits::exp(left.reference(i) - reference)]] [[;]]
  rescale-missing [[Traits::from_double(1.0)]]
  rescaled-by-another-row [[Traits::exp(left.reference(left.reference.size() - 1 - i) - reference)]])
# Masks.
plant(core/problem/sight.h [[last = rule.causal != Causal::none ? ]] [[p + 1]] [[ : keys;]]
  causal-off-by-one [[p + 2]])
plant(core/problem/sight.h [[== Causal::bottom_right ? ]] [[i + keys - rows]] [[ : i;]]
  bottom-right-is-top-left [[i]])
plant(core/problem/sight.h [[first = ]] [[p - rule.window_left]] [[;]]
  window-exclusive-on-the-left [[p - rule.window_left + 1]])
plant(core/problem/sight.h [[last = std::min(last, ]] [[p + rule.window_right + 1]] [[);]]
  window-exclusive-on-the-right [[p + rule.window_right]])
plant(core/problem/sight.h [[const std::int64_t begin = ]] [[p - p % rule.chunk]] [[;]]
  chunk-of-the-next-position [[p + 1 - (p + 1) % rule.chunk]])
plant(core/problem/sight.h [[last = p < 0 ? 0 : ]] [[std::min(last, begin + rule.chunk)]] [[;]]
  chunk-without-an-end [[last]])
plant(core/definition/mask.h [[if (]] [[j >= covered]] [[) return true;]]
  appended-key-is-causal [[j >= covered && mask.positions.causal == Causal::none]])
plant(core/definition/mask.h [[pages_[static_cast<std::size_t>(]] [[(batch_ == 1 ? 0 : b) * heads_ + (heads_ == 1 ? 0 : h)]] [[)];]]
  pages-transposed [[(heads_ == 1 ? 0 : h) * batch_ + (batch_ == 1 ? 0 : b)]])
# Projections.
plant(${definitions}/projection.h [[a(i, c) = ]] [[a(i, c) + (*bias)(c)]] [[;]]
  bias-dropped [[a(i, c)]])
plant(${definitions}/projection.h [[product(w_q, ]] [[transposed(w_k)]] [[)]]
  key-weights-not-transposed [[w_k]])
plant(${definitions}/projection.h [[k.push_back(columns_from(head, ]] [[dk]] [[, dk));]]
  interleaved-keys-are-queries [[Index{0}]])
plant(${definitions}/matrix.h [[l = 1; ]] [[l < a.cols()]] [[; ++l)]]
  product-loses-its-last-term [[l + 1 < a.cols()]])
# Heads.
plant(${definitions}/multihead.h [[outputs.push_back(mattn_lse(q_heads[at], k_heads[at], ]] [=[v_heads[at]]=] [[, scale, masks(0, m)));]]
  heads-swapped [=[v_heads[v_heads.size() - 1 - at]]=])
plant(${definitions}/multihead.h [[w_o.middleRows(]] [[m * dv]] [[, dv)]]
  every-head-takes-the-first-block-of-w_o [[Index{0}]])
plant(${definitions}/multihead.h [[w.w_o = ]] [[transposed(torch.out_proj_weight)]] [[;]]
  out-projection-not-transposed [[torch.out_proj_weight]])
# Columns and positions.
plant(${definitions}/columns.h [[const Matrix<T> weights = ]] [[softmax_columns(s)]] [[;]]
  softmax-along-the-other-axis [[softmax_rows(s)]])
plant(${definitions}/position.h [[y(i, c) = ]] [[y(i, c) + table(i, c)]] [[;]]
  every-token-at-the-first-position [[y(i, c) + table(0, c)]])

list(JOIN names "\", \"" joined)
file(WRITE "${OUT}/planted_names.h"
     "// Written by plant.cmake.\n#pragma once\n#include <string>\n#include <vector>\n\n"
     "inline const std::vector<std::string> planted_names{\"${joined}\"};\n")
