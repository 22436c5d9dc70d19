#include "reports/command_line/completion.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <stdexcept>

#include "core/kernel/kernel_under_test.h"
#include "core/proof/proof_back_end.h"
#include "fuzz/libfuzzer.h"
#include "properties/catalogue/hypotheses.h"
#include "properties/catalogue/property.h"
#include "properties/faults/faults.h"
#include "reports/run/version.h"

namespace attest {
namespace {

std::vector<std::string> planted_names() {
  std::vector<std::string> names;
  for (const std::vector<KernelEntry>& entries : {fault_kernels(), control_kernels()})
    for (const KernelEntry& entry : entries) names.push_back(entry.id);
  return names;
}

std::vector<std::string> property_names(std::string_view prefix = "") {
  std::vector<std::string> names;
  for (const Property* property : catalogue()) names.push_back(std::string(prefix) + std::string(property->name));
  return names;
}

std::vector<std::string> objective_names() {
  std::vector<std::string> names = property_names("law:");
  for (const char* name : {"all", "error", "nonfinite", "row-sum"}) names.emplace_back(name);
  return names;
}

std::vector<std::string> dtype_names() {
  std::vector<std::string> names;
  for (const DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16}) names.emplace_back(name_of(dtype));
  return names;
}

std::vector<std::string> hypothesis_names() {
  std::vector<std::string> names;
  for (const Hypothesis* hypothesis : all_hypotheses()) names.emplace_back(hypothesis->name);
  return names;
}

/// The script's own part. The words of the line are taken from the line itself: what bash hands over is torn apart at
/// colons and equals signs.
constexpr std::string_view script = R"(_attest() {
  local line=${COMP_LINE:0:COMP_POINT} words=() word current option='' command='' first='' files='' listed=''
  read -r -a words <<<"$line"
  if [[ $line == *[[:space:]] ]]; then words+=(''); fi
  current=${words[-1]}
  unset 'words[-1]'
  for word in "${words[@]:1}"; do
    case $word in
      @COMMANDS@) command=$word; break ;;
    esac
  done
  COMPREPLY=()
  if [[ $current == --*=* ]]; then
    option=${current%%=*} first=$option=
    current=${current#*=}
  elif (( ${#words[@]} > 1 )); then
    option=${words[-1]}
  fi
  local choices=''
  case $command:$option in
@VALUES@    *) option='' ;;
  esac
  if [[ -z $option ]]; then
    first=''
    case $command in
@OPTIONS@    esac
    if [[ $current != -* ]]; then
      case $command in
@POSITIONAL@        *) [[ -z $command ]] || choices='' ;;
      esac
    fi
  fi
  local before=''
  if [[ -n $listed && $current == *,* ]]; then
    before=${current%,*},
    current=${current##*,}
  fi
  mapfile -t COMPREPLY < <(compgen -W "$choices" -- "$current"; [[ -z $files ]] || compgen "$files" -- "$current")
  if [[ -n $files ]]; then compopt -o filenames 2>/dev/null; fi
  if [[ -n $before ]]; then COMPREPLY=("${COMPREPLY[@]/#/$before}"); fi
  # What bash replaces begins behind the last of its word breaks.
  if [[ $COMP_WORDBREAKS == *:* && $current == *:* ]]; then COMPREPLY=("${COMPREPLY[@]#"${current%:*}:"}"); fi
  if [[ -n $first && $COMP_WORDBREAKS != *=* ]]; then COMPREPLY=("${COMPREPLY[@]/#/$first}"); fi
}
complete -F _attest attest
)";

std::string replaced(std::string text, std::string_view mark, const std::string& by) {
  const std::size_t at = text.find(mark);
  return text.replace(at, mark.size(), by);
}

/// The branch of a `case` that sets what may follow.
std::string branch(std::size_t indent, const std::string& pattern, const Completions& completions) {
  std::string text = fmt::format("{:{}}{}) choices='{}'", "", indent, pattern, fmt::join(completions.words, " "));
  if (completions.files) text += " files=-f";
  if (completions.folders) text += " files=-d";
  if (completions.listed) text += " listed=yes";
  return text + " ;;\n";
}

/// "check:-o|check:--out|check:--output": values follow every spelling.
std::string pattern_of(const CommandRow& command, const OptionRow& row) {
  std::vector<std::string> patterns;
  for (const std::string_view spelling : spellings_of(row))
    patterns.push_back(fmt::format("{}:{}", command.name, spelling));
  return fmt::format("{}", fmt::join(patterns, "|"));
}

void add_flags(std::vector<std::string>& words, std::string_view flags) {
  const std::string_view last = long_flag(flags);
  if (last.size() < flags.size()) words.emplace_back(flags.substr(0, flags.size() - last.size() - 1));
  words.emplace_back(last);
}

}  // namespace

Completions completions_of(const OptionRow& row) {
  const std::string_view value = row.positional() ? row.flags : row.value;
  if (value == "KERNEL") return {.words = known_kernels(), .files = true};
  if (value == "GLOB") return {.words = row.flags == "--kernel" ? planted_names() : property_names()};
  if (value == "ENGINE") return {.words = {engine_names.begin(), engine_names.end()}};
  if (value == "LANGUAGE") return {.words = {Words<Language>::names.begin(), Words<Language>::names.end()}};
  if (value == "SERVICE") return {.words = {Words<CiService>::names.begin(), Words<CiService>::names.end()}};
  if (value == "WHAT") return {.words = objective_names()};
  if (value == "DTYPE") return {.words = dtype_names(), .listed = true};
  if (value == "HYPOTHESIS") return {.words = hypothesis_names()};
  if (value == "NAME") return {.words = {"finite-field", "sign", "symbolic", "taint"}};
  if (value == "held") return {.words = {"held"}};
  if (value == "FILE" || value == "CASE" || value == "RUN") return {.words = {}, .files = true};
  if (value == "DIR") return {.words = {}, .folders = true};
  constexpr std::array without_names{"N", "NUMBER", "I/N", "TIME", "SIZE", "M,N,dk,dv,h"};
  if (std::ranges::find(without_names, value) == without_names.end())
    throw std::logic_error(fmt::format("no completion is known for {} of {}", value, row.flags));
  return {};
}

std::string bash_completion() {
  std::vector<std::string> names;
  std::string values, options, positional;
  std::vector<std::string> outside;
  for (const ProgramFlag& flag : program_flags()) add_flags(outside, flag.flags);
  for (const CommandRow& command : command_rows()) {
    names.emplace_back(command.name);
    outside.emplace_back(command.name);
    std::vector<std::string> words{"-h", "--help"};
    for (const OptionRow& row : option_rows()) {
      if ((row.commands & on(command.command)) == 0) continue;
      if (row.positional()) {
        positional += branch(8, std::string(command.name), completions_of(row));
        continue;
      }
      add_flags(words, row.flags);
      if (row.takes != Takes::nothing) values += branch(4, pattern_of(command, row), completions_of(row));
    }
    options += branch(6, std::string(command.name), {.words = std::move(words)});
  }
  options += branch(6, "*", {.words = std::move(outside)});
  std::string text(script);
  text = replaced(std::move(text), "@COMMANDS@", fmt::format("{}", fmt::join(names, " | ")));
  text = replaced(std::move(text), "@VALUES@", values);
  text = replaced(std::move(text), "@OPTIONS@", options);
  text = replaced(std::move(text), "@POSITIONAL@", positional);
  return fmt::format("# Completion of attest {} for bash, written by attest --bash-completion.\n{}", version(), text);
}

}  // namespace attest
