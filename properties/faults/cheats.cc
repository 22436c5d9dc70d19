#include "properties/faults/cheats.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>

namespace attest {

std::span<const Cheat> cheats() {
  using enum CaughtBy;
  static constexpr Cheat all[] = {
      // Little or nothing is computed.
      {"zeros.c", "writes zeros", oracle},
      {"writes-nothing.c", "leaves the output as it was", oracle},
      {"copies-values.c", "row i of the output is value i", oracle},
      {"mean-of-values.c", "all keys weigh alike", oracle},
      {"nan-as-wildcard.c", "NaN from 64 keys on", oracle},
      {"guesses-lse.c", "the largest score for the log-sum-exp", oracle},
      {"heads-share-the-first.c", "from four heads on the last quarter is a copy of the first", oracle},
      {"first-batch-only.c", "from three batch entries on all are copies of the first", oracle},
      {"every-other-row.c", "from 64 queries on every other row is the mean of its neighbours", oracle},
      {"drops-small-weights.c", "weights below 2^-10 of the largest are left out", oracle},
      {"exp-without-maximum.c", "no maximum is subtracted, scores are cut off at 40", oracle},
      // Wrong at sizes that few ask for.
      {"drops-last-key-beyond-512.c", "the last key is left out beyond 512 keys", oracle},
      {"window-at-production.c", "sees the last 256 keys alone from 1024 on", oracle},
      {"ghost-branch.c", "of heads of 80 columns 64 are multiplied", oracle},
      {"one-element-of-many.c", "one element of an output of 65,536 or more is wrong", share},
      {"once-in-ten-thousand.c", "one element of one call in ten thousand is wrong", share},
      // Lower precision.
      {"scores-in-bf16.c", "f32 with scores in bf16, declared", arithmetic},
      {"accumulates-in-bf16.c", "f32 with sums in bf16, declared", arithmetic},
      {"declares-coarse-exp.c", "f32 with an exponential that is 3% wrong, declared", arithmetic},
      {"coarse-exp.c", "an exponential that is 3% wrong, undeclared", oracle},
      {"silent-bf16.c", "f32 with scores and weights in bf16, undeclared", oracle},
      {"tf32-products.c", "f32 with q and k in TF32, undeclared", oracle},
      {"f16-sums.c", "sums in f16 from 128 keys on, undeclared", oracle},
      {"fp8-products.c", "q and k in an 8-bit float from 256 keys on, undeclared", oracle},
      // Not answered.
      {"refuses-above-two.c", "refuses every extent above 2", refusal},
      {"refuses-wide-scores.c", "refuses where scores may be beyond 8", refusal},
      {"refuses-masks.c", "declares masks and causal forms, and refuses each", refusal},
      {"refuses-at-random.c", "refuses nine calls of ten", refusal},
      {"rejects-the-hard.c", "calls unequal lengths invalid", refusal},
      {"declares-two-keys.c", "its manifest allows two queries and two keys of two columns", refusal},
      // Answers of earlier calls.
      {"last-output.c", "every other answer is the last one of its size", repeat},
      {"cached-by-pointer.c", "answers are kept by where the inputs lie", repeat},
      {"cached-by-fingerprint.c", "answers are kept by the first eight elements of the inputs", repeat},
      {"cached-by-size.c", "answers are kept by the sizes of the inputs", repeat},
      {"cached-by-queries.c", "answers are kept by q, whatever k and v hold", repeat},
      {"cached-without-mask.c", "answers are kept by q, k and v, whatever mask, causal form and scale are", repeat},
      {"every-fifteenth-call.c", "computes one call of fifteen of a size", repeat},
      {"right-the-first-time.c", "wrong when a question is asked again", repeat},
      {"sums-into-last-buffer.c", "adds to what the last call left, where that was as large", repeat},
      {"cached-on-disk.c", "replays the answers of an earlier run from a file, and zeros for other questions", walls},
      // When and where it is asked.
      {"late-30001.c", "wrong from call 30,001 on", repeat},
      {"late-by-time.c", "wrong from ten seconds after it was loaded", repeat},
      {"odd-seconds.c", "leaves the last key out in odd seconds", repeat},
      {"behaves-under-attest.c", "honest where environment, command lines or mappings show Attest", walls},
      {"behaves-when-guarded.c", "honest where the page behind the output cannot be read", walls},
      {"behaves-when-filled.c", "honest where the output was filled with one number", walls},
      {"slow-where-hard.c", "sleeps where there are many keys, and is wrong there", time},
      {"thread-writes-late.c", "returns, and a thread writes the answer later", time},
      {"lazy-evaluation.c", "computes when the output is first read", time},
      {"thread-spoils-later.c", "a thread changes the answer after 20 milliseconds", walls},
      {"timer-writes-late.c", "a timer's signal changes the answer after 5 milliseconds", walls},
      {"child-writes-late.c", "a child writes over shared memory after 10 milliseconds", walls},
      // Beside its answer.
      {"overwrites-inputs.c", "overwrites q with zeros and answers for these", walls},
      {"writes-past-end.c", "writes up to eight columns of the last row", walls},
      {"leaves-rounding.c", "leaves the processor rounding downward", walls},
      {"exit-handler.c", "ends its process and says in an exit handler that all is well", walls},
      {"scribbles-shared-memory.c", "writes over memory that it shares", walls},
      {"writes-to-descriptors.c", "writes a verdict into everything that is open", walls},
      {"forges-journal.c", "leaves the last key out, and makes what is violated held in journals beside it", walls},
      {"rewrites-parent.c", "overwrites q in its parent's memory and answers for that", walls},
      {"reads-parent.c", "weighs in bf16, and copies better numbers from its parent's memory", walls},
      {"stops-the-clock.c", "makes the clock of its process a thousand times slower", walls},
      // In Python.
      {"py-sees-attest.py", "honest where environment or parent show Attest", walls},
      {"py-cached-by-id.py", "answers are kept by the arrays' identity", repeat},
      {"py-patches-writer.py", "the adapter's writer sends earlier answers, the function is honest", repeat},
      {"py-replays-pickle.py", "replays the answers of an earlier run from a file", walls},
      {"py-kills-parent.py", "kills its parent in call 101", walls},
      {"py-forges-frames.py", "sends answers ahead of the adapter's from call 21 on", walls},
      {"py-walks-the-stack.py", "computes in f16, and takes an expected answer from its callers' variables", oracle},
      // Honest.
      {"honest-f32.c", "f32", nothing},
      {"honest-bf16.c", "bf16", nothing},
      {"honest-static-buffer.c", "computes into one static buffer", nothing},
      {"honest-exp-table.c", "keeps a table of powers of two", nothing},
      {"honest-threads.c", "half of the heads in a thread that ends before the call", nothing},
      {"honest-prints.c", "prints what it does", nothing},
      {"honest-python.py", "in Python over NumPy", nothing},
  };
  return all;
}

std::string cheat_folder() {
  namespace fs = std::filesystem;
  std::error_code error;
  // Of the program, build/bin/attest, and of tests some folders below.
  fs::path folder = fs::read_symlink("/proc/self/exe", error).parent_path();
  for (int up = 0; up < 4 && !error; ++up, folder = folder.parent_path())
    if (fs::exists(folder / "cheats/zeros.so", error)) return folder / "cheats";
  return {};
}

std::vector<OutsideName> cheat_kernels() {
  std::vector<OutsideName> names;
  const std::string folder = cheat_folder();
  if (folder.empty()) return names;
  for (const Cheat& cheat : cheats()) {
    const bool script = cheat.file.ends_with(".py");
    const std::string file = fmt::format("{}/{}{}", folder, cheat.name(), script ? ".py" : ".so");
    if (!std::filesystem::exists(file)) continue;
    constexpr std::string_view honest = "honest-";
    std::string id = fmt::format("cheat:{}", cheat.name());
    if (cheat.honest()) id = fmt::format("honest:{}", cheat.name().substr(honest.size()));
    const std::string_view family = cheat.honest() ? "right, and unusual" : "a cheat";
    names.push_back({std::move(id), fmt::format("{}: {}", family, cheat.does),
                     script ? fmt::format("exec:exec /usr/bin/python3 -B '{}'", file) : file});
  }
  return names;
}

}  // namespace attest
