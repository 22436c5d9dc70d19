#include "reports/run/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

#include "reports/text/text.h"

namespace attest {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto between_lines = std::chrono::seconds(10);

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::size_t terminal_width() {
  winsize size{};
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 20 ? size.ws_col : 80;
}

}  // namespace

std::string duration_text(double seconds) {
  const auto whole = static_cast<std::int64_t>(std::llround(std::clamp(seconds, 0.0, 1e9)));
  if (whole >= 3600) return fmt::format("{} h {:02} m", whole / 3600, whole / 60 % 60);
  if (whole >= 60) return fmt::format("{} m {:02} s", whole / 60, whole % 60);
  return fmt::format("{} s", whole);
}

std::string describe(const FindingRecord& finding, const std::string& folder) {
  const Subject& subject = finding.subject;
  const bool violated = finding.verdict.outcome == Outcome::violated;
  return fmt::format("{} {} by {} in {}, case {} ({}utilisation {} as saved)\n  {}\n  replay: {} replay {}\n",
                     violated ? "VIOLATED" : "INCONCLUSIVE", one_line(subject.property), one_line(subject.kernel),
                     one_line(subject.dtype), finding.k, violated ? fmt::format("{}, ", finding.kind()) : "",
                     short_number(finding.verdict.utilisation), one_line(finding.verdict.reason), command_name(),
                     shell_quoted((std::filesystem::path(folder) / finding.case_file).string()));
}

std::string PrintedFindings::text_of(const FindingRecord& finding, const std::string& folder) {
  if (printed_.contains(finding.subject)) {
    passed_over_ = true;
    return {};
  }
  if (printed_.size() < most) {
    printed_.insert(finding.subject);
    return describe(finding, folder);
  }
  passed_over_ = true;
  return rest();
}

std::string PrintedFindings::rest() {
  if (!passed_over_ || std::exchange(said_, true)) return {};
  return "more findings: see the report\n";
}

Progress::Progress(const RunFolder& folder, std::optional<std::chrono::milliseconds> time, Says says)
    : folder_(folder.path().string()),
      time_(time),
      says_(says),
      terminal_(::isatty(STDERR_FILENO) != 0),
      start_(Clock::now()),
      last_line_(start_) {}

void Progress::plan(std::int64_t planned, const Journal& earlier) {
  planned_ = planned;
  for (const BatchRecord& batch : earlier.batches) earlier_ += batch.tally.cases();
}

Progress::~Progress() {
  clear();
}

Progress::Status Progress::status() const {
  const double elapsed = seconds_since(start_);
  const double rate = static_cast<double>(done_) / std::max(elapsed, 1e-3);
  const auto left = static_cast<double>(std::max<std::int64_t>(planned_ - earlier_ - done_, 0));
  Status status{.part = planned_ > 0 ? static_cast<double>(done_ + earlier_) / static_cast<double>(planned_) : 1,
                .seconds_left = rate > 0 ? left / rate : -1};
  if (time_) {
    const double limit = std::chrono::duration<double>(*time_).count();
    status.part = std::max(status.part, elapsed / limit);
    status.seconds_left = status.seconds_left < 0 ? limit - elapsed : std::min(status.seconds_left, limit - elapsed);
  }
  status.part = std::clamp(status.part, 0.0, 1.0);
  return status;
}

std::string Progress::line(const Status& status) const {
  std::string text = fmt::format("{:3.0f} %  {} cases  {:.0f}/s", 100 * status.part, done_ + earlier_,
                                 static_cast<double>(done_) / std::max(seconds_since(start_), 1e-3));
  if (status.seconds_left >= 0) text += fmt::format("  {} left", duration_text(status.seconds_left));
  if (done_ + earlier_ == 0) text = "waiting for the first answers of the kernels";
  if (violated_ > 0) text += fmt::format("  {} violated", violated_);
  if (!first_found_.empty()) text += fmt::format(", first {}", first_found_);
  return text;
}

void Progress::batch_done(const BatchRecord& batch) {
  done_ += batch.tally.cases();
  violated_ += batch.tally.violated;
}

void Progress::found(const FindingRecord& finding) {
  if (says_ == Says::nothing) return;
  if (says_ == Says::progress) {
    if (first_found_.empty() && finding.verdict.outcome == Outcome::violated)
      first_found_ = fmt::format("{} in {}", one_line(finding.subject.property), one_line(finding.subject.dtype));
    return;
  }
  const std::string text = printed_.text_of(finding, folder_);
  if (text.empty()) return;
  clear();
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

void Progress::finish() {
  clear();
  std::fputs(printed_.rest().c_str(), stdout);
  std::fflush(stdout);
}

void Progress::tick() {
  if (says_ == Says::findings || says_ == Says::nothing) return;
  const Status now = status();
  std::string text = line(now);
  if (!terminal_) {
    if (Clock::now() - last_line_ < between_lines) return;
    last_line_ = Clock::now();
    std::fputs((text + "\n").c_str(), stderr);
    return;
  }
  const std::size_t width = terminal_width();
  if (width > text.size() + 14) {
    const std::size_t length = std::min<std::size_t>(width - text.size() - 4, 30);
    const auto full = static_cast<std::size_t>(now.part * static_cast<double>(length));
    text = fmt::format("[{}{}] {}", std::string(full, '#'), std::string(length - full, ' '), text);
  }
  std::fputs(fmt::format("\r\x1b[K{}", text.substr(0, width - 1)).c_str(), stderr);
  drawn_ = true;
}

void Progress::clear() {
  if (drawn_) std::fputs("\r\x1b[K", stderr);
  drawn_ = false;
}

}  // namespace attest
