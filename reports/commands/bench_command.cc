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

/// Google Benchmark would answer with all that it knows, once for each program.
void refuse_foreign(const std::vector<std::string>& words) {
  static constexpr std::array<std::string_view, 11> known{"--benchmark_filter",
                                                          "--benchmark_list_tests",
                                                          "--benchmark_min_time",
                                                          "--benchmark_repetitions",
                                                          "--benchmark_report_aggregates_only",
                                                          "--benchmark_format",
                                                          "--benchmark_out",
                                                          "--benchmark_out_format",
                                                          "--benchmark_time_unit",
                                                          "--benchmark_color",
                                                          "--help"};
  for (const std::string& word : words) {
    if (word.starts_with("--benchmark_") || word.starts_with("--v=") || word == "-h" || word == "--help") continue;
    const std::string name = word.substr(0, word.find('='));
    const std::string whole = "--benchmark_" + name.substr(std::min(name.find_first_not_of('-'), name.size()));
    const std::string meant = nearest_name(whole, known).value_or("");
    throw UsageError(fmt::format("unknown option {} of attest bench; {}", in_quotes(name),
                                 meant.empty() ? "its options are Google Benchmark's, as --benchmark_filter=NAME"
                                               : fmt::format("did you mean \"{}\"?", meant)));
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
          "Runs the benchmarks; the options are Google Benchmark's.", "attest bench --benchmark_filter=verdict"};
}

}  // namespace attest
