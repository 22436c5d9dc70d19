#include "reports/service/service.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <csignal>
#include <exception>
#include <iostream>
#include <limits>
#include <new>
#include <string>
#include <system_error>
#include <utility>

#include "core/support/errors.h"
#include "core/support/json_writer.h"
#include "core/support/names.h"
#include "reports/run_folder/version.h"
#include "reports/service/requests.h"
#include "reports/text/text.h"

namespace attest {
namespace {

constexpr std::array<std::string_view, 3> asks{"bounds", "judge", "case"};
constexpr std::array<Answer (*)(const Request&), asks.size()> answers{answer_bounds, answer_judge, answer_case};

std::string error_line(std::string_view what) {
  return JsonWriter().begin_object().member("refused", one_line(what)).end_object().text();
}

std::string answer_or_throw(std::string_view text, SharedFile& memory) {
  const nlohmann::json json = parse_strict_json(text);
  const JsonObject said(json, "", request_keys());
  const auto ask = said.word("ask", asks);
  if (!ask) throw UsageError("a request says under \"ask\" what is asked");
  std::int64_t bytes = 0;
  said.read("bytes", {0, std::numeric_limits<std::int64_t>::max()}, bytes);
  const Answer answer = answers[*ask]({said, memory.read(static_cast<std::uint64_t>(bytes))});
  memory.write(answer.file);
  return fmt::format("{{{},\"bytes\":{}}}", answer.members, answer.file.size());
}

}  // namespace

std::string answer_request(std::string_view request, SharedFile& memory) {
  try {
    return answer_or_throw(request, memory);
  } catch (const UsageError& error) {
    return error_line(error.what());
  } catch (const std::bad_alloc&) {
    return error_line("not enough memory; fewer rows or a smaller problem need less");
  } catch (const std::exception& error) {
    return error_line(fmt::format("a mistake in attest itself: {}", error.what()));
  }
}

int service_main(int argc, char** argv) {
  int descriptor = -1;
  const std::string_view word = argc == 3 ? argv[2] : "";
  if (std::from_chars(word.data(), word.data() + word.size(), descriptor).ec != std::errc() || descriptor < 3) {
    std::cerr << "attest: service is started by Attest's Python package, and answers what that asks\n";
    return 2;
  }
  std::signal(SIGPIPE, SIG_IGN);
  SharedFile memory(descriptor);
  std::cout << JsonWriter().begin_object().member("attest", version()).end_object().text() << std::endl;
  for (std::string line; std::getline(std::cin, line) && std::cout;)
    std::cout << answer_request(line, memory) << std::endl;
  return 0;
}

}  // namespace attest
