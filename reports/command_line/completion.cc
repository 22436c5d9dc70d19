#include "reports/command_line/completion.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

#include "reports/command_line/parse.h"
#include "reports/run_folder/version.h"

namespace attest {
namespace {

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
std::string pattern_of(const Command& command, const ShownOption& option) {
  std::vector<std::string> patterns;
  patterns.reserve(option.spellings.size());
  for (const std::string& spelling : option.spellings) patterns.push_back(fmt::format("{}:{}", command.name, spelling));
  return fmt::format("{}", fmt::join(patterns, "|"));
}

}  // namespace

std::string bash_completion(std::span<const Command> commands) {
  std::vector<std::string> names, outside;
  std::string values, options, positional;
  for (const ShownOption& option : program_options())
    outside.insert(outside.end(), option.flags.begin(), option.flags.end());
  for (const Command& command : commands) {
    names.emplace_back(command.name);
    outside.emplace_back(command.name);
    std::vector<std::string> words{"-h", "--help"};
    for (const ShownOption& option : command.options.shown()) {
      if (option.positional) {
        positional += branch(8, names.back(), option.offer());
        continue;
      }
      words.insert(words.end(), option.flags.begin(), option.flags.end());
      if (!option.value.empty()) values += branch(4, pattern_of(command, option), option.offer());
    }
    options += branch(6, names.back(), {.words = std::move(words)});
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
