// Options that several commands have: as structs where some belong together, with the rules of those.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/kernel/kernel_under_test.h"
#include "core/support/errors.h"
#include "core/support/names.h"
#include "properties/catalogue/property.h"
#include "reports/command_line/option_values.h"
#include "reports/run/interrupt.h"
#include "reports/run/recorded_shapes.h"
#include "reports/run_folder/run_folder.h"

namespace attest {

/// "KERNEL", as --kernel names it.
inline Value<std::string> kernel_name() {
  return any_text("KERNEL", [] { return Completions{.words = known_kernels(), .files = true}; });
}

/// "FILE": an earlier run, for --baseline.
inline Value<std::string> baseline_name() {
  return text_naming("a file of tolerances or a run", "FILE", files);
}

/// The kernel to compare with; empty: none.
inline void declare_against(OptionList& list, std::string& kernel) {
  list.option("--against", kernel, text_naming("a kernel as --kernel does", "KERNEL", kernel_name().offer),
              "compare with this kernel on the same cases instead of with the exact result: violated where the two "
              "differ by more than both are allowed together");
}

inline void declare_alarm(OptionList& list, bool& alarm) {
  list.flag("--alarm", alarm,
            "count what lies beyond the probabilistic bound (rounding errors as random numbers), far below the proved "
            "one; never changes a verdict or the exit status, and costs time");
}

inline void refuse_alarm_against(bool alarm, const std::string& kernel) {
  refuse_if(
      alarm && !kernel.empty(),
      "--alarm and --against exclude each other: the alarm is about the distance from the exact result; give one");
}

/// Rows of a captured case that are judged, as Judging has them.
inline void declare_rows(OptionList& list, std::optional<std::int64_t>& rows) {
  const Value<std::int64_t> count{"ROWS",
                                  [](std::string_view option, const std::string& text) {
                                    if (text == "all") return Judging::all_rows;
                                    if (text.ends_with(".csv"))
                                      throw UsageError(fmt::format(
                                          "{} is {}; it takes a number of rows to judge, or all; did you mean --table "
                                          "{}, which attest check writes a row for each case to?",
                                          option, in_quotes(text), shell_quoted(text)));
                                    return whole_number<std::int64_t>(1).read(option, text);
                                  },
                                  [] { return Completions{.words = {"all"}}; }};
  list.option(
      "--rows", rows, count,
      "judge so many ROWS of a captured case, the first, the last, those at edges of tiles and others, or all (default: "
      "all; 4096 where they take more than 2^36 multiplications)");
}

inline void declare_dtypes(OptionList& list, std::vector<DType>& dtypes) {
  list.option("--dtype", dtypes, dtype_list(),
              "f64, f32, f16 or bf16, or several with commas; repeatable (default: all)");
}

/// `jobs` is one per core without it.
inline void declare_jobs(OptionList& list, int& jobs) {
  jobs = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  const Value<int> threads{"N", [read = whole_number(1).read](std::string_view option, const std::string& text) {
                             return std::min(read(option, text), 1024);
                           }};
  list.option("--jobs", jobs, threads, "threads, each with its own kernels (default: one per core)");
}

inline void declare_known(OptionList& list, std::filesystem::path& file) {
  list.option("--known", file, file_name(),
              "violations that are expected, a TOML file with a [[finding]] of kernel, dtype, property, reason and "
              "date each: they do not make the exit status 1, but a new one does, and one that is gone. Of a run in "
              "shards, attest merge holds the whole against them");
}

inline void declare_out(OptionList& list, std::filesystem::path& folder) {
  list.option("-o,--out", folder, text_naming("a folder", "DIR", folders),
              "the run's folder (default: the next free attest-run-NNN, of an audit attest-audit-NNN)");
}

inline void declare_overwrite(OptionList& list, bool& overwrite) {
  list.flag("--overwrite", overwrite, "remove the run in --out first");
}

inline void declare_quiet(OptionList& list, bool& quiet) {
  list.flag("--quiet", quiet,
            "no progress, no warnings and no table; findings, errors and that a run is inconclusive are still printed");
}

inline void declare_seed(OptionList& list, std::uint64_t& seed) {
  list.option("--seed", seed, whole_number<std::uint64_t>(0),
              "run seed; case k of a property in a dtype follows from it alone (default: 1)");
}

/// Which shapes a run draws.
struct ShapeOptions {
  bool no_large = false, only = false;
  std::vector<std::string> given;
  std::filesystem::path file;

  void declare(OptionList& list) {
    list.several("--shape", given, any_text("B,H,KV,M,N,DK[,DV]"),
                 "draw cases of this shape in the place of production shapes: batch, heads, key-value heads, queries, "
                 "keys, columns of keys and of values; repeatable");
    list.option(
        "--shapes", file, file_name(),
        "the same for the shapes of a file, one a line (# begins a comment), and for those that were recorded: a "
        "definition (.json) or workloads (.jsonl) of flashinfer-bench, or a folder of them, as "
        "FLASHINFER_TRACE_DUMP_DIR is");
    list.flag("--shapes-only", only, "draw production shapes, or those given, in every case, and no small ones");
    list.flag("--no-large", no_large,
              "draw no production shapes: those that models have and edges of tiles, about a third of a run's cost");
  }
  [[nodiscard]] bool any() const { return no_large || only || !given.empty() || !file.empty(); }
  void refuse() const {
    refuse_if(no_large && (only || !given.empty() || !file.empty()),
              "--no-large draws no production shapes; --shape, --shapes and --shapes-only ask for them; give one");
  }
  /// Throws UsageError for what is no shape and for a file that cannot be read. `notes` gets what is to be said of the
  /// shapes of a file.
  [[nodiscard]] Shapes read(std::vector<std::string>& notes) const {
    Shapes shapes{.large = no_large ? LargeCases::none : only ? LargeCases::all : LargeCases::some, .given = {}};
    for (const std::string& text : given) shapes.given.push_back(shape_of("--shape", text));
    if (!file.empty()) {
      ReadShapes found = read_shapes("--shapes", file);
      shapes.given.insert(shapes.given.end(), found.shapes.begin(), found.shapes.end());
      notes = std::move(found.notes);
    }
    return shapes;
  }
};

/// The limits of kernels' processes.
struct KernelProcess {
  KernelOptions limits;

  void declare(OptionList& list) {
    list.option("--timeout", limits.reply, duration(),
                "time limit for a process's reply: 500ms, 90s, 10m or 2h; a number alone is seconds (default: 10s, and "
                "for a large case up to 5 minutes, by the speed of the calls before; its first may take 60s). Given, "
                "what takes longer is violated however large");
    list.option("--memory", limits.memory, memory_size(),
                "memory that a kernel's process may hold beyond what it shares: 512MiB, 4GiB, or none for no limit "
                "(default: 4GiB)");
    list.flag(
        "--in-process", limits.in_process,
        "load shared libraries into attest itself, for a debugger or for speed. Nothing protects the run then: a "
        "kernel that crashes, exits, hangs or takes all memory takes attest with it and leaves no finding, what it "
        "prints lands among attest's own output, --timeout and --memory do not hold, and a kernel that is not "
        "thread_safe is called by one job at a time");
  }
  /// For opening kernels, with the program's interrupt.
  [[nodiscard]] KernelOptions options() const {
    KernelOptions options = limits;
    options.first_reply = std::max(options.first_reply, options.reply.value_or(options.first_reply));
    options.interrupt = interrupt_descriptor();
    return options;
  }
};

/// Where a run goes, whether it goes on, and which part of it is made.
struct RunPlace {
  std::filesystem::path out;  ///< empty: the next free attest-run-NNN
  bool resume = false;
  bool accept_changed_kernel = false;
  bool salvage = false;  ///< leave out what is damaged in the journal
  bool overwrite = false;
  Shard shard;

  void declare(OptionList& list) {
    declare_out(list, out);
    list.flag("--resume", resume, "go on with the run in --out: finished batches are not run again");
    list.flag("--accept-changed-kernel", accept_changed_kernel,
              "go on with --resume though a file of a kernel, or attest itself, is not what it was when the run began; "
              "the verdicts are then of both, and the report says so");
    list.flag("--salvage", salvage,
              "with --resume: take damaged lines out of the journal, and say which; what they held is run again");
    declare_overwrite(list, overwrite);
    list.option("--shard", shard, shard_of_run(),
                "take the cases k = I mod N only, of a campaign the runs; 0 <= I < N; join the parts with merge");
  }
  void refuse() const {
    refuse_if(resume && overwrite, "--resume and --overwrite exclude each other; give one");
    refuse_if(salvage && !resume, "--salvage is for a run that goes on; give --resume with it");
    refuse_if(resume && out.empty(), "--resume needs --out, the folder of the run to go on with");
    refuse_if(accept_changed_kernel && !resume,
              "--accept-changed-kernel is about a run that goes on; give it with --resume");
  }
  [[nodiscard]] RunFolder open() const {
    return {out, resume ? RunFolder::Mode::resume : overwrite ? RunFolder::Mode::overwrite : RunFolder::Mode::fresh};
  }
};

}  // namespace attest
