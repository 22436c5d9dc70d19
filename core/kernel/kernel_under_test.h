// A kernel under test: the generic core on some scalar, a built-in kernel, a shared library or a process, all behind
// one abstraction and one view of a tensor.
#pragma once

#include <attest/kernel.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "core/kernel/manifest.h"
#include "core/kernel/values.h"
#include "core/problem/case.h"
#include "core/support/words.h"
#include "core/value/tensor.h"

namespace attest {

/// A kernel that cannot be loaded or started: one line with what, where and how to mend it. Exit status 3.
class KernelLoadError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// How a call ended. All but ok, unsupported, rejected, late and too_slow are findings by themselves.
enum class CallStatus {
  ok,
  unsupported,  ///< the kernel says it cannot do this one: skipped, counted
  rejected,     ///< the kernel says the problem is invalid: a violation if it is valid
  failed,       ///< the kernel reports an error, or throws
  died,         ///< its process ended (signal or exit status in the message)
  timed_out,    ///< no reply within the time limit
  malformed,    ///< a reply that is not one: shape, dtype, frame
  late,         ///< no reply to a large case within the time that was made up for it: nothing is known
  too_slow      ///< not asked: cases as large had been late before
};
template <>
struct Words<CallStatus> {
  static constexpr std::array<std::string_view, 9> names{"ok",        "unsupported",     "rejected", "failed",  "died",
                                                         "timed out", "malformed reply", "late",     "too slow"};
};

/// What came back. `out` is present only when status is ok, and a tensor where a dtype was asked for; so is lse, where
/// it was asked for. In the kernel's own numbers the lse of wider scalars is absent, and that of a proof always there.
struct Reply {
  CallStatus status = CallStatus::ok;
  std::string message;
  Values out;
  Values lse;
  /// Of a backward pass, by Gradient, each in its argument's shape; absent where the kernel returns none. It has no out
  /// and no lse.
  std::array<Values, gradient_count> gradients{};
  /// Beside an lse in the form of the contract the kernel's own, where that is another one (lse_convention.h).
  Values own_lse{};
};

/// What a backward pass is called with beside its problem.
struct BackwardCall {
  Tensor out, lse;                        ///< that its forward pass returned, [batch, heads, M, dv] and
                                          ///< [batch, heads, M] in f64
  GradientChoice wanted = all_gradients;  ///< which it is to return, of those that the problem and the kernel have
  Tensor own_lse{};                       ///< Reply::own_lse of that forward pass

  [[nodiscard]] bool asks_for(Gradient gradient, const BackwardTerms& terms, const Problem& c) const {
    return wanted[static_cast<std::size_t>(gradient)] && terms.returns(gradient, c);
  }
};

struct Walls;  // isolation/walls/walls.h

/// Options of opening kernels.
struct KernelOptions {
  std::chrono::milliseconds first_reply{60'000};
  /// Nothing: `ordinary_reply`, and for a large case as much more as the kernel's speed makes likely
  /// (isolation/pace.h).
  std::optional<std::chrono::milliseconds> reply;
  std::filesystem::path log_folder;  ///< where a process's standard error is kept; empty: in memory, the newest part
  /// The program that serves shared libraries as `PROGRAM worker LIBRARY` (see worker_main.h); empty: the running one.
  std::filesystem::path worker_program;
  /// A descriptor that becomes readable when the run is to end: every wait for a process's reply then ends at once as
  /// if its time were over, and the process is killed. -1: none.
  int interrupt = -1;
  /// Bytes of private writable memory that a kernel's process may hold; 0: no limit. Four GiB are more than a
  /// forward pass of any case needs and less than makes a machine swap.
  std::uint64_t memory = std::uint64_t{4} << 30U;
  /// A shared library is loaded into this very process: a debugger sees it, and its crash, hang or stray write is ours.
  /// The time limits and `memory` do not hold then.
  bool in_process = false;
  /// For a small case where `reply` says nothing; what a large one may have and cost is counted in these.
  std::chrono::milliseconds ordinary_reply{10'000};
  /// Null: none, as for a kernel that one trusts. Else the kernel's process is built in, or is not started at all.
  std::shared_ptr<const Walls> walls{};
};

/// A kernel under test. One thread at a time; clone() gives another job its own.
class Kernel {
 public:
  virtual ~Kernel() = default;
  /// As written on the command line and in journals: "builtin:flash", "exec:python3 mine.py".
  [[nodiscard]] virtual const std::string& id() const = 0;
  [[nodiscard]] virtual const Manifest& manifest() const = 0;
  /// Runs a valid case. `output` is the dtype of out (the input's own, or one of out_dtypes); none: out in the kernel's
  /// own numbers, which are the input's dtype unless the kernel computes on a scalar that no dtype holds. Never throws
  /// for what the kernel does; a process that died or was killed has been started again when the next call needs it.
  [[nodiscard]] virtual Reply run(const Case& c, std::optional<DType> output, bool want_lse) = 0;
  /// The output alone, but for a kernel that requires its lse to be asked for.
  [[nodiscard]] Reply run(const Case& c);
  /// The backward pass of a valid case that asks for gradients, given what run() answered to its forward pass. In the
  /// case's dtype, or `output`. As run(), it never throws for what the kernel does. `unsupported` of a kernel that has
  /// none.
  [[nodiscard]] virtual Reply backward(const Case& c, const BackwardCall& call, DType output);
  /// Decimal digits of the kernel's own numbers where it computes on a scalar wider than every dtype; else 0.
  [[nodiscard]] virtual unsigned digits() const { return 0; }
  /// Whether it does, at which every case takes its time.
  [[nodiscard]] bool is_wide() const { return digits() > 0; }
  [[nodiscard]] virtual std::unique_ptr<Kernel> clone() const = 0;
  /// What the kernel did wrong before it was ever called, in one line; empty: nothing. It stands in no Reply, as it is
  /// about no case, and violates the contract all the same.
  [[nodiscard]] virtual std::string load_finding() const { return {}; }
  /// What is worth knowing of it and of its clones so far and violates nothing, a line each, such as that it prints.
  [[nodiscard]] virtual std::vector<std::string> notes() const { return {}; }
};

/// A kernel given as a function over the C structures, called in this process. It sees copies of the inputs, aligned as
/// the manifest asks, and a fresh output filled with a sentinel, all between guard zones that read as NaN. `failed`: a
/// status beyond 2, an exception, an element left unwritten (a suspect is called once more over another fill, so no
/// value a kernel may return is mistaken for it), a guard or an input changed, the floating-point environment changed.
/// A case whose operation has no function here is `unsupported`. Clones copy the functions, which must not share state.
using AttentionFunction = std::function<int(const attest_problem&, attest_result&, std::string& message)>;
using MultiheadFunction = std::function<int(const attest_multihead_problem&, attest_result&, std::string& message)>;
using BackwardFunction = std::function<int(const attest_backward_problem&, attest_gradients&, std::string& message)>;
/// The functions of a kernel; one that is null it has not.
struct KernelFunctions {
  AttentionFunction attention;
  MultiheadFunction multihead;
  BackwardFunction backward;
};
[[nodiscard]] std::unique_ptr<Kernel> function_kernel(std::string id, Manifest manifest, KernelFunctions functions);
[[nodiscard]] std::unique_ptr<Kernel> function_kernel(std::string id, Manifest manifest, AttentionFunction attention,
                                                      MultiheadFunction multihead = nullptr);

/// Opens what `--kernel SPEC` names (kernel-interface.md, section 0; globs give several, sorted by name). Throws
/// UsageError for a name that matches nothing (with the nearest name), KernelLoadError for one that cannot start.
[[nodiscard]] std::vector<std::unique_ptr<Kernel>> open_kernels(std::string_view spec, const KernelOptions& options);

/// Every name `--kernel` knows without being told a command or a path: "builtin:…", "core:…", "document:…", "ort:…",
/// "pytorch:…", in order, for `attest list`. Starts nothing.
[[nodiscard]] std::vector<std::string> known_kernels();

/// Registration: each built-in family provides one of these; core/kernels/registry.cc lists them.
struct KernelEntry {
  std::string id;
  std::string summary;  ///< one line for `attest list`
  std::function<std::unique_ptr<Kernel>()> make;
  // Of the core on a scalar.
  int bits = 0;             ///< of a dtype's significand; 0: wider
  unsigned digits = 0;      ///< decimal digits of a wider one
  bool any_digits = false;  ///< more of them, or fewer, can be asked for
  /// On a wider one: the same under another id and, where there can be any, with so many digits.
  std::function<std::unique_ptr<Kernel>(const std::string& id, unsigned digits)> make_as{};
};
[[nodiscard]] std::vector<KernelEntry> builtin_kernels();  ///< core/kernels
[[nodiscard]] std::vector<KernelEntry> core_kernels();     ///< the generic core per scalar, core/kernels/core_kernel.cc
/// The modules of the source documents as they stand, mistakes included, core/kernels/documents. No run takes them
/// unless it is told to.
[[nodiscard]] std::vector<KernelEntry> document_kernels();

}  // namespace attest
