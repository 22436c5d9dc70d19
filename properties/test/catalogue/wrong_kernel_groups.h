// The groups that wrong_kernels.h lists, a source for each, and what several are made of.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "core/problem/case.h"
#include "core/problem/fields.h"
#include "core/problem/sight.h"
#include "properties/test/catalogue/wrong_kernels.h"

namespace attest {

/// Of a whole call; of whether its tensors lie under strides too.
[[nodiscard]] std::uint64_t hash_of_call(const Case& c);
/// From 1/4 to 1, of either sign.
[[nodiscard]] double noise_of(std::uint64_t hash);

// Right but where a problem has the variant.
/// Another problem in the place of the one asked for, its alignment settled anew.
[[nodiscard]] Spoilt::Fault variant_asked(const Variant& variant, std::function<void(Case&)> change);
/// The answer, of output and log-sum-exp, made of the right one and of the one without the variant.
using OfAnswers = std::function<double(double right, double without)>;
[[nodiscard]] Spoilt::Fault variant_answered(const Variant& variant, OfAnswers out, OfAnswers lse);
[[nodiscard]] double right_answer(double right, double without);
/// The output's rows that the predicate chooses by what they see.
[[nodiscard]] Spoilt::Fault rows_answered(const Variant& variant, std::function<bool(const Sight&)> chosen,
                                          std::function<double(double old)> value);
[[nodiscard]] bool sees_nothing(const Sight& seen);
[[nodiscard]] bool begins_behind_a_block(const Sight& seen);
/// The whole output, where some row sees nothing.
[[nodiscard]] Spoilt::Fault risen_beside_empty_rows(const Variant& variant);
/// The output and a hundredth of what the first value and the last one differ by.
[[nodiscard]] Spoilt::Fault with_a_trace_of_the_ends(const Variant& variant);
/// lse less what the case says.
[[nodiscard]] Spoilt::Fault lse_lowered(const Variant& variant, std::function<double(const Case&)> by);

/// "looks-at …" and "wrong-at …"
[[nodiscard]] std::vector<WrongKernel> noisy_kernels();
[[nodiscard]] std::vector<WrongKernel> mistaken_kernels();
/// Right but for windows.
[[nodiscard]] std::vector<WrongKernel> mistaken_windows();
/// Right but for chunks.
[[nodiscard]] std::vector<WrongKernel> mistaken_chunks();
/// Right but for gradients.
[[nodiscard]] std::vector<WrongKernel> mistaken_gradients();
[[nodiscard]] std::vector<WrongKernel> mistaken_backward_passes();
/// What these are made of, without a mistake.
[[nodiscard]] WrongKernel plain_backward_pass();
/// "gradients-look-at …" and "gradients-wrong-at …", as the first two of wrong_kernels.h.
[[nodiscard]] std::vector<WrongKernel> noisy_gradients();
/// Right but for sinks.
[[nodiscard]] std::vector<WrongKernel> mistaken_sinks();
/// Right but for caps.
[[nodiscard]] std::vector<WrongKernel> mistaken_softcaps();
/// Right but for dropout.
[[nodiscard]] std::vector<WrongKernel> mistaken_dropouts();
/// Right but for slopes.
[[nodiscard]] std::vector<WrongKernel> mistaken_alibi();
/// Right but for factors.
[[nodiscard]] std::vector<WrongKernel> mistaken_descale();
/// Right but for sequences of lengths of their own.
[[nodiscard]] std::vector<WrongKernel> mistaken_sequences();
/// Right but for a cache of keys and values.
[[nodiscard]] std::vector<WrongKernel> mistaken_caches();
/// Right but for where keys and values lie in one.
[[nodiscard]] std::vector<WrongKernel> mistaken_pages();

}  // namespace attest
