#include "reports/run/fuzz_progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "core/problem/case.h"
#include "reports/run/progress.h"
#include "reports/run/repetition.h"
#include "reports/text/text.h"

namespace attest {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto between_lines = std::chrono::seconds(10);

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace

std::string archive_file_name(const Subject& subject) {
  const std::filesystem::path like_a_case = case_file_name(subject, subject.kernel, "archive");
  return "archive/" + like_a_case.stem().string() + ".jsonl";
}

std::string status_line(const CampaignObserver::Status& status, double seconds, std::optional<double> seconds_left) {
  std::string text =
      fmt::format("{}  {} runs  {:.0f}/s  {} cells  worst {}", duration_text(seconds), status.runs,
                  static_cast<double>(status.runs) / std::max(seconds, 1e-3), status.cells, short_number(status.worst));
  if (status.findings > 0) text += fmt::format("  {} finding{}", status.findings, status.findings == 1 ? "" : "s");
  if (seconds_left) text += fmt::format("  {} left", duration_text(*seconds_left));
  return text;
}

FuzzRecorder::FuzzRecorder(const RunFolder& folder, JournalWriter& journal, Look look)
    : folder_(folder),
      journal_(journal),
      look_(std::move(look)),
      terminal_(::isatty(STDERR_FILENO) != 0),
      start_(Clock::now()),
      last_line_(start_) {
  folder_.files().make_folder("archive");
}

FuzzRecorder::~FuzzRecorder() {
  clear();
}

std::string FuzzRecorder::file_of(const Subject& subject, std::string_view which) const {
  const auto name = look_.called.find(subject.kernel);
  return case_file_name(subject, name == look_.called.end() ? subject.kernel : name->second, which);
}

void FuzzRecorder::save(AnsweredCase c, const Subject& subject, Outcome expected, const std::string& file) const {
  Provenance& of = c.value.provenance;
  of.property = subject.property;
  of.kernel = subject.kernel;
  of.dtype = subject.dtype;
  of.expected = name_of(expected);
  if (!look_.against.empty()) of.against = look_.against;
  folder_.files().write(file, encode_case(c));
}

void FuzzRecorder::found(FindingRecord& finding, AnsweredCase c) {
  finding.case_file = file_of(finding.subject, fmt::format("k{}", finding.k));
  if (finding.repetition) note_repetition(finding, c.value);
  save(std::move(c), finding.subject, finding.verdict.outcome, finding.case_file);
  journal_.append(finding);
  clear();
  std::fputs(describe(finding, folder_.path().string()).c_str(), stdout);
  std::fflush(stdout);
}

void FuzzRecorder::batch_done(const BatchRecord& batch) {
  journal_.append(batch);
}

void FuzzRecorder::archive_grew(const Subject& subject, const Archive& archive) {
  folder_.files().write(archive_file_name(subject), to_text(archive));
}

void FuzzRecorder::new_worst(const Subject& subject, const Case& c, const Verdict& verdict) {
  save({c}, subject, verdict.outcome, file_of(subject, "worst"));
}

void FuzzRecorder::tick(const Status& status) {
  if (look_.quiet) return;
  const double seconds = seconds_since(start_);
  std::optional<double> left;
  if (look_.time) left = std::max(0.0, std::chrono::duration<double>(*look_.time).count() - seconds);
  const std::string text = status_line(status, seconds, left);
  if (!terminal_) {
    if (Clock::now() - last_line_ < between_lines) return;
    last_line_ = Clock::now();
    std::fputs((text + "\n").c_str(), stderr);
    return;
  }
  std::fputs(fmt::format("\r\x1b[K{}", text.substr(0, 79)).c_str(), stderr);
  drawn_ = true;
}

void FuzzRecorder::clear() {
  if (drawn_) std::fputs("\r\x1b[K", stderr);
  drawn_ = false;
}

}  // namespace attest
