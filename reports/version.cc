#include "version.h"

#include <fmt/format.h>
#include <mpfr.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <array>
#include <boost/version.hpp>
#include <ctime>
#include <fstream>
#include <thread>

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

}  // namespace

std::string version() {
  return ATTEST_VERSION;
}

std::string version_date() {
  return ATTEST_VERSION_DATE;
}

std::map<std::string, std::string> environment_facts() {
  utsname system{};
  ::uname(&system);
  return {
      {"version", version()},       {"compiler", __VERSION__},
      {"mpfr", mpfr_get_version()}, {"boost", BOOST_LIB_VERSION},
      {"host", system.nodename},    {"system", fmt::format("{} {} {}", system.sysname, system.release, system.machine)},
      {"processor", processor()},   {"cores", std::to_string(std::thread::hardware_concurrency())}};
}

std::string now_text() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  ::gmtime_r(&now, &utc);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text.data();
}

MetaRecord end_record(std::chrono::steady_clock::time_point start, bool interrupted) {
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  MetaRecord record{"end", {{"time", now_text()}, {"seconds", fmt::format("{:.3f}", seconds)}}};
  if (interrupted) record.facts["interrupted"] = "yes";
  return record;
}

}  // namespace attest
