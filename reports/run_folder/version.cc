#include "reports/run_folder/version.h"

#include <elf.h>
#include <fmt/format.h>
#include <link.h>
#include <mpfr.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <array>
#include <boost/version.hpp>
#include <cstring>
#include <ctime>
#include <fstream>
#include <thread>

#include "reports/run_folder/run_folder.h"

namespace attest {
namespace {

std::string processor() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    const std::size_t colon = line.find(':');
    if (line.starts_with("model name") && colon + 2 < line.size()) return line.substr(colon + 2);
  }
  return "unknown";
}

/// Of the program itself, which is the first that dl_iterate_phdr names.
int read_note(dl_phdr_info* info, std::size_t, void* to) {
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = info->dlpi_phdr[i];
    if (header.p_type != PT_NOTE) continue;
    const auto* at = reinterpret_cast<const unsigned char*>(info->dlpi_addr + header.p_vaddr);
    const auto* const end = at + header.p_memsz;
    const auto padded = [](std::size_t size) { return (size + 3) / 4 * 4; };
    while (at + sizeof(ElfW(Nhdr)) <= end) {
      ElfW(Nhdr) note;
      std::memcpy(&note, at, sizeof note);
      const unsigned char* const name = at + sizeof note;
      const unsigned char* const bytes = name + padded(note.n_namesz);
      if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && std::memcmp(name, "GNU", 4) == 0) {
        auto& text = *static_cast<std::string*>(to);
        for (std::size_t b = 0; b < note.n_descsz; ++b) text += fmt::format("{:02x}", bytes[b]);
        return 1;
      }
      at = bytes + padded(note.n_descsz);
    }
  }
  return 1;
}

std::string note_of_the_linker() {
  std::string text;
  ::dl_iterate_phdr(read_note, &text);
  return text;
}

/// Now, UTC, "2026-01-31T12:34:56Z".
std::string now_text() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  ::gmtime_r(&now, &utc);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text.data();
}

}  // namespace

std::string version() {
  return ATTEST_VERSION;
}

std::string build_id() {
  static const std::string id = note_of_the_linker();
  return id.empty() ? version() : id;
}

std::string version_date() {
  return ATTEST_VERSION_DATE;
}

MetaRecord begin_record(std::span<const char* const> arguments) {
  utsname system{};
  ::uname(&system);
  MetaRecord record{"begin",
                    {{"time", now_text()},
                     {"version", version()},
                     {"build", build_id()},
                     {"compiler", __VERSION__},
                     {"mpfr", mpfr_get_version()},
                     {"boost", BOOST_LIB_VERSION},
                     {"host", system.nodename},
                     {"system", fmt::format("{} {} {}", system.sysname, system.release, system.machine)},
                     {"processor", processor()},
                     {"cores", std::to_string(std::thread::hardware_concurrency())}}};
  for (std::size_t i = 1; i < arguments.size(); ++i)
    record.facts["arguments"] += (i > 1 ? " " : "") + shell_quoted(arguments[i]);
  return record;
}

MetaRecord end_record(std::chrono::steady_clock::time_point start, bool interrupted) {
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  MetaRecord record{"end", {{"time", now_text()}, {"seconds", fmt::format("{:.3f}", seconds)}}};
  if (interrupted) record.facts["interrupted"] = "yes";
  return record;
}

}  // namespace attest
