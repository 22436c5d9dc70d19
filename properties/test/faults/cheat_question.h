// A question put to a cheat's library by itself, in memory that a test can arrange, and what an honest one answers.
#pragma once

#include <attest/kernel.h>
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "core/test/cases.h"
#include "core/test/temporary_folder.h"
#include "properties/faults/cheats.h"

namespace attest::test {

using AttentionEntry = int (*)(const attest_problem*, attest_result*, char*, std::size_t);

/// The entry of a library of cheats/. What it keeps between calls is kept for the whole process.
inline AttentionEntry cheat_entry(std::string_view name) {
  const std::string file = cheat_folder() + "/" + std::string(name) + ".so";
  void* const library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw std::runtime_error(::dlerror());
  return reinterpret_cast<AttentionEntry>(::dlsym(library, "attest_kernel_attention"));
}

/// In f32, row-major.
class Question {
 public:
  explicit Question(const CaseSizes& sizes, std::uint32_t seed = 1)
      : sizes_(sizes),
        q(count(sizes.heads, sizes.queries, sizes.dk)),
        k(count(sizes.heads, sizes.keys, sizes.dk)),
        v(count(sizes.heads, sizes.keys, sizes.dv)),
        out(count(sizes.heads, sizes.queries, sizes.dv), unwritten),
        lse(count(sizes.heads, sizes.queries, 1), unwritten),
        place(out.data()),
        state_(seed) {
    for (auto* const numbers : {&q, &k, &v}) draw(*numbers);
  }
  Question(const Question&) = delete;
  Question& operator=(const Question&) = delete;

  static constexpr float unwritten = 77;

  /// Other numbers between -1 and 1.
  void draw(std::vector<float>& numbers) {
    for (float& x : numbers) {
      state_ = state_ * 1664525U + 1013904223U;
      x = static_cast<float>(state_ >> 8U) * 0x1p-23F - 1;
    }
  }
  /// The status of the call. The answer is at `place`, which is out's memory unless a test moves it.
  int ask(AttentionEntry entry) {
    attest_problem p{};
    p.size = sizeof p;
    p.q = tensor(q.data(), {sizes_.batch, sizes_.heads, sizes_.queries, sizes_.dk});
    p.k = tensor(k.data(), {sizes_.batch, sizes_.heads, sizes_.keys, sizes_.dk});
    p.v = tensor(v.data(), {sizes_.batch, sizes_.heads, sizes_.keys, sizes_.dv});
    p.scale = scale;
    p.causal = causal;
    attest_result r{};
    r.size = sizeof r;
    r.out = tensor(place, {sizes_.batch, sizes_.heads, sizes_.queries, sizes_.dv});
    r.lse = tensor(lse.data(), {sizes_.batch, sizes_.heads, sizes_.queries, 1});
    r.lse.dtype = ATTEST_F64;
    r.lse.rank = 3;
    if (!wants_lse) r.lse = {};
    char message[256] = "";
    return entry(&p, &r, message, sizeof message);
  }
  /// Whether what stands at `place` is what honest-f32 answers, within some roundings.
  [[nodiscard]] bool is_right() {
    static const AttentionEntry honest = cheat_entry("honest-f32");
    const std::vector<float> found(place, place + out.size());
    const std::vector<double> found_lse = lse;
    std::vector<float> answer(out.size());
    float* const kept = std::exchange(place, answer.data());
    ask(honest);
    place = kept;
    const auto near = [](double a, double b) { return std::abs(a - b) <= 4e-6 * (1 + std::abs(b)); };
    const bool right =
        std::ranges::equal(found, answer, near) && (!wants_lse || std::ranges::equal(found_lse, lse, near));
    lse = found_lse;
    return right;
  }
  /// A call of a library, and whether its answer is right.
  [[nodiscard]] bool is_answered_right(AttentionEntry entry) { return ask(entry) == ATTEST_OK && is_right(); }

 private:
  [[nodiscard]] std::size_t count(std::int64_t heads, std::int64_t rows, std::int64_t columns) const {
    return static_cast<std::size_t>(sizes_.batch * heads * rows * columns);
  }
  [[nodiscard]] static attest_tensor tensor(void* data, const std::array<std::int64_t, 4>& shape) {
    attest_tensor t{};
    t.data = data;
    t.dtype = ATTEST_F32;
    t.rank = 4;
    std::int64_t step = 1;
    for (std::size_t axis = 4; axis-- > 0; step *= shape[axis]) {
      t.shape[axis] = shape[axis];
      t.stride[axis] = step;
    }
    return t;
  }

  CaseSizes sizes_;

 public:
  std::vector<float> q, k, v, out;
  std::vector<double> lse;
  float* place;
  double scale = 0.5;
  int causal = ATTEST_CAUSAL_NONE;
  bool wants_lse = true;

 private:
  std::uint32_t state_;
};

/// Where cheats keep files between runs while it lives.
class OwnTemporaryFolder {
 public:
  OwnTemporaryFolder() { ::setenv("TMPDIR", folder_.path().c_str(), 1); }
  ~OwnTemporaryFolder() { ::unsetenv("TMPDIR"); }
  OwnTemporaryFolder(const OwnTemporaryFolder&) = delete;
  OwnTemporaryFolder& operator=(const OwnTemporaryFolder&) = delete;

 private:
  TemporaryFolder folder_;
};

/// Runs in a process of its own, which ends by itself: its exit status, or 1000 and the signal that ended it.
template <class Run>
[[nodiscard]] int in_child(const Run& run) {
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child == 0) ::_exit(run());
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? 1000 + WTERMSIG(status) : WEXITSTATUS(status);
}

/// Asks until `holds`, for some seconds.
template <class Holds>
[[nodiscard]] bool in_time(const Holds& holds) {
  for (int i = 0; i < 2000; ++i) {
    if (holds()) return true;
    ::usleep(5000);
  }
  return false;
}

}  // namespace attest::test
