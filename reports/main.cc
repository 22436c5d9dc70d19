#include <fmt/format.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "core/isolation/worker_main.h"
#include "core/kernel/kernel_under_test.h"
#include "core/kernels/kernel_families.h"
#include "core/problem/case.h"
#include "properties/faults/faults.h"
#include "reports/command_line/completion.h"
#include "reports/command_line/help.h"
#include "reports/command_line/manual.h"
#include "reports/commands/commands.h"
#include "reports/run/interrupt.h"
#include "reports/run/text.h"
#include "reports/run/version.h"

namespace {

using namespace attest;

int run(int argc, char** argv) {
  add_kernel_family(fault_kernels);
  add_kernel_family(control_kernels);
  const Options options = parse_options(argc, argv);
  if (options.version) {
    fmt::print("attest {}\n", version());
    return 0;
  }
  if (options.man_page || options.bash_completion) {
    std::fputs((options.man_page ? man_page() : bash_completion()).c_str(), stdout);
    return 0;
  }
  if (options.help) {
    std::fputs(help_text(options.command).c_str(), stdout);
    return 0;
  }
  switch (options.command) {
    case Command::check:
      return check_command(options, argc, argv);
    case Command::init:
      return init_command(options);
    case Command::list:
      return list_command(options);
    case Command::replay:
      return replay_command(options);
    case Command::merge:
      return merge_command(options);
    case Command::compare:
      return compare_command(options);
    case Command::report:
      return report_command(options);
    case Command::fuzz:
      return fuzz_command(options, argc, argv);
    case Command::bench:
      return bench_command(options);
    case Command::audit:
      return audit_command(options);
    case Command::prove:
      return prove_command(options);
    case Command::probe:
      return probe_command(options);
    case Command::tolerance:
      return tolerance_command(options);
    case Command::none:
      break;
  }
  return 2;
}

int complain(std::string_view what, int status) {
  std::fflush(stdout);
  // fmt::print throws where nobody reads any more.
  std::fputs(fmt::format("attest: {}\n", one_line(what)).c_str(), stderr);
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  // The process of a shared library under test; not for people.
  if (argc > 1 && std::string_view(argv[1]) == "worker") return worker_main(argc, argv);
  // A limit on the size of a file is an error of its write, like a full disk, and not the end.
  std::signal(SIGXFSZ, SIG_IGN);
  try {
    const int status = run(argc, argv);
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
      return complain(fmt::format("standard output cannot be written: {}", std::strerror(errno)), 2);
    }
    return status;
  } catch (const Abandoned&) {
    return complain("interrupted before there was a verdict", 130);
  } catch (const UsageError& error) {
    return complain(error.what(), 2);
  } catch (const KernelLoadError& error) {
    return complain(error.what(), 3);
  } catch (const std::bad_alloc&) {
    return complain("not enough memory; fewer --jobs or smaller cases need less", 2);
  } catch (const std::exception& error) {
    if (std::ferror(stdout) != 0)
      return complain(fmt::format("standard output cannot be written: {}", error.what()), 2);
    return complain(fmt::format("a mistake in attest itself: {}", error.what()), 2);
  }
}
