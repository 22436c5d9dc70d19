#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "core/support/errors.h"
#include "core/support/names.h"
#include "reports/commands/commands.h"

extern char** environ;

namespace attest {
namespace {

std::vector<std::filesystem::path> benchmark_programs(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> programs;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    if (entry.path().filename().string().ends_with("_bench") && ::access(entry.path().c_str(), X_OK) == 0)
      programs.push_back(entry.path());
  }
  std::ranges::sort(programs);
  return programs;
}

/// The exit status; 128 + signal for one that was killed.
int run_program(const std::filesystem::path& program, const std::vector<std::string>& arguments) {
  std::vector<std::string> words{program.string()};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  pid_t child = 0;
  if (const int error = ::posix_spawn(&child, program.c_str(), nullptr, nullptr, argv.data(), environ); error != 0) {
    throw UsageError(fmt::format("{}: cannot be started: {}", program.string(), std::strerror(error)));
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/// Of Google Benchmark, those that one needs.
constexpr std::array<std::string_view, 7> usual{"filter",    "list_tests", "min_time", "repetitions",
                                                "time_unit", "format",     "out"};

/// Google Benchmark would answer with all that it knows, once for each program.
void refuse_foreign(const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    if (word.starts_with("--benchmark_") || word.starts_with("--v=") || word == "-h" || word == "--help") continue;
    const std::string name = word.substr(0, word.find('='));
    const bool prefix_missing = name.starts_with("--") && std::ranges::find(usual, name.substr(2)) != usual.end();
    throw UsageError(fmt::format("unknown option {} of attest bench; {}", in_quotes(name),
                                 prefix_missing ? fmt::format("did you mean \"--benchmark_{}\"?", name.substr(2))
                                                : "attest bench --help lists the options"));
  }
}

struct BenchOptions {
  std::vector<std::string> passed_on;  ///< the arguments for the benchmark programs

  void declare(OptionList& list) { list.pass_on(passed_on); }
};

int run_benchmarks(const BenchOptions& options) {
  refuse_foreign(options.passed_on);
  const std::filesystem::path folder = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  const std::vector<std::filesystem::path> programs = benchmark_programs(folder);
  if (programs.empty()) {
    throw UsageError(fmt::format("no benchmark stands beside the program in {}; build all targets with ATTEST_BENCH=ON",
                                 folder.string()));
  }
  int worst = 0;
  for (const std::filesystem::path& program : programs) {
    fmt::print("== {}\n", program.filename().string());
    std::fflush(stdout);
    if (run_program(program, options.passed_on) != 0) worst = 2;
  }
  return worst;
}

}  // namespace

Command bench_command() {
  return {with_options<BenchOptions>(run_benchmarks), "bench", "attest bench [BENCHMARK OPTIONS]",
          "Runs the benchmarks. The options are Google Benchmark's, such as --benchmark_filter=REGEX, "
          "--benchmark_list_tests, --benchmark_min_time=0.5s, --benchmark_repetitions=N, --benchmark_time_unit=ms, "
          "--benchmark_format=json and --benchmark_out=FILE.",
          "attest bench --benchmark_filter=verdict"};
}

}  // namespace attest
