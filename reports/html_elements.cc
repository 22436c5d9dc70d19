#include "html_elements.h"

#include <fmt/format.h>

#include "run_folder.h"
#include "text.h"

namespace attest {
namespace {

std::string_view sign_of(Outcome outcome) {
  // A sign beside the colour: for print, and for eyes that see no red.
  switch (outcome) {
    case Outcome::held:
      return "✓";
    case Outcome::violated:
      return "✗";
    case Outcome::inconclusive:
      return "?";
    case Outcome::skipped:
    case Outcome::excused:
      return "–";
  }
  return "";
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string html;
  for (const char c : text) {
    switch (c) {
      case '&':
        html += "&amp;";
        break;
      case '<':
        html += "&lt;";
        break;
      case '>':
        html += "&gt;";
        break;
      case '"':
        html += "&quot;";
        break;
      case '\'':
        html += "&#39;";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t') {
          html += "\xEF\xBF\xBD";
        } else {
          html += c;
        }
    }
  }
  return html;
}

std::string badge(Outcome outcome) {
  return fmt::format("<span class=\"badge {0}\"><span aria-hidden=\"true\">{1}</span> {0}</span>", name_of(outcome),
                     sign_of(outcome));
}

std::string anchor_of(const KernelSummary& kernel) {
  std::string id = "k";
  for (const char c : kernel.id + "-" + kernel.dtype) id += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '-';
  return id;
}

std::string replay_line(const std::string& folder, const std::string& case_file) {
  return command_name() + " replay " + shell_quoted(folder.empty() ? case_file : folder + "/" + case_file);
}

std::string worst_text(const Tally& tally) {
  return tally.worst_k < 0 ? "–" : short_number(tally.worst_utilisation);
}

}  // namespace attest
