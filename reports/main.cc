#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "core/isolation/worker_main.h"
#include "core/kernel/kernel_under_test.h"
#include "core/kernels/kernel_families.h"
#include "core/problem/case.h"
#include "properties/faults/cheats.h"
#include "properties/faults/faults.h"
#include "properties/road/watched_kernel.h"
#include "reports/command_line/completion.h"
#include "reports/command_line/help.h"
#include "reports/command_line/manual.h"
#include "reports/command_line/parse.h"
#include "reports/commands/commands.h"
#include "reports/conclusion/conclusion.h"
#include "reports/run/interrupt.h"
#include "reports/run_folder/version.h"
#include "reports/service/service.h"
#include "reports/text/text.h"

namespace {

using namespace attest;

int run(int argc, char** argv) {
  add_kernel_family(fault_kernels);
  add_kernel_family(control_kernels);
  add_outside_names(cheat_kernels);
  const std::vector<Command> commands = all_commands();
  const Arguments words(argv, static_cast<std::size_t>(argc));
  const CommandLine line = parse(commands, words);
  const bool shows = line.version || line.man_page || line.bash_completion || line.help;
  if (line.command == nullptr && !shows) {
    // Whoever types the name alone wants to know what there is; a script that does so has tested nothing.
    std::fputs(program_help(commands).c_str(), stdout);
    std::fflush(stdout);
    throw UsageError("no command given; those that there are stand above");
  }
  if (!shows) return line.command->run(words);
  const std::string text = line.version           ? fmt::format("attest {}\n", version())
                           : line.man_page        ? man_page(commands)
                           : line.bash_completion ? bash_completion(commands)
                           : line.command         ? command_help(*line.command)
                                                  : program_help(commands);
  std::fputs(text.c_str(), stdout);
  return 0;
}

int complain(std::string_view what, int status) {
  std::fflush(stdout);
  // fmt::print throws where nobody reads any more.
  std::fputs(fmt::format("attest: {}\n", one_line(what)).c_str(), stderr);
  return status;
}

/// That standard output cannot be written. `error`: of the write that failed just now; 0 where it was an earlier one,
/// behind which errno is about something else. A pipe without a reader tells that still.
int complain_of_output(int error) {
  pollfd output{STDOUT_FILENO, POLLOUT, 0};
  if (error == 0 && ::poll(&output, 1, 0) == 1 && (output.revents & POLLERR) != 0) error = EPIPE;
  const std::string why = error == 0       ? ""
                          : error == EPIPE ? ": what reads it has closed the pipe"
                                           : fmt::format(": {}", std::strerror(error));
  return complain(fmt::format("standard output cannot be written{}", why), 2);
}

}  // namespace

int main(int argc, char** argv) {
  // The process of a shared library under test; not for people.
  if (argc > 1 && std::string_view(argv[1]) == "worker") return worker_main(argc, argv);
  // What Attest's Python package asks.
  if (argc > 1 && std::string_view(argv[1]) == "service") return service_main(argc, argv);
  // A limit on the size of a file is an error of its write, like a full disk, and not the end.
  std::signal(SIGXFSZ, SIG_IGN);
  try {
    const int status = run(argc, argv);
    if (std::fflush(stdout) != 0) return complain_of_output(errno);
    if (std::ferror(stdout) != 0) return complain_of_output(0);
    return status;
  } catch (const Abandoned&) {
    return complain("interrupted before there was a verdict", 130);
  } catch (const UsageError& error) {
    return complain(error.what(), 2);
  } catch (const KernelLoadError& error) {
    return complain(fmt::format("{}: {}", nothing_tested, error.what()), 3);
  } catch (const std::bad_alloc&) {
    return complain("not enough memory; fewer --jobs or smaller cases need less", 2);
  } catch (const std::system_error& error) {
    // Of fmt::print, whose write it was.
    if (std::ferror(stdout) != 0) return complain_of_output(error.code().value());
    return complain(fmt::format("a mistake in attest itself: {}", error.what()), 2);
  } catch (const std::exception& error) {
    return complain(fmt::format("a mistake in attest itself: {}", error.what()), 2);
  }
}
