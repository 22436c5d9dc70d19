// What can be said of a shared library before it is loaded: glibc passes over a library of another machine as if there
// were no file, and speaks of ELF classes.
#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <link.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <span>
#include <string_view>
#include <system_error>

#include "core/isolation/child.h"
#include "core/isolation/library.h"
#include "core/support/names.h"

namespace attest::process {
namespace {

/// The fields that both classes of ELF have at the same place.
struct Header {
  unsigned char word_size = 0, byte_order = 0;
  std::uint16_t type = 0, machine = 0;
  [[nodiscard]] bool same_machine(const Header& other) const {
    return word_size == other.word_size && byte_order == other.byte_order && machine == other.machine;
  }
};

Header header_of(std::span<const unsigned char> bytes) {
  Header header;
  header.word_size = bytes[EI_CLASS];
  header.byte_order = bytes[EI_DATA];
  const auto half = [&](std::size_t at) {
    const unsigned low = bytes[header.byte_order == ELFDATA2MSB ? at + 1 : at];
    const unsigned high = bytes[header.byte_order == ELFDATA2MSB ? at : at + 1];
    return static_cast<std::uint16_t>(high << 8U | low);
  };
  header.type = half(EI_NIDENT);
  header.machine = half(EI_NIDENT + 2);
  return header;
}

std::string machine_name(const Header& header) {
  switch (header.machine) {
    case EM_X86_64:
      return header.word_size == ELFCLASS32 ? "x32" : "x86-64";
    case EM_386:
      return "32-bit x86";
    case EM_AARCH64:
      return "AArch64";
    case EM_ARM:
      return "32-bit ARM";
    case EM_RISCV:
      return header.word_size == ELFCLASS32 ? "32-bit RISC-V" : "RISC-V";
    case EM_PPC64:
      return "64-bit PowerPC";
    default:
      return fmt::format("{}-bit machine number {}", header.word_size == ELFCLASS32 ? 32 : 64, header.machine);
  }
}

/// The first bytes of a file; fewer where it is shorter. -1 and errno where it cannot be read.
ssize_t read_start(const std::filesystem::path& file, std::span<unsigned char> bytes) {
  const Descriptor fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  return fd ? ::read(fd.get(), bytes.data(), bytes.size()) : -1;
}

}  // namespace

std::string why_unloadable(const std::filesystem::path& file) {
  struct stat status{};
  if (::stat(file.c_str(), &status) != 0) {
    if (errno == ENOENT || errno == ENOTDIR)
      return "there is no such file; build the library first or correct its path";
    return fmt::format("cannot be looked at ({}); correct its path or the rights to its folder", std::strerror(errno));
  }
  if (S_ISDIR(status.st_mode)) return "is a folder; name the shared library in it";
  if (!S_ISREG(status.st_mode)) return "is no regular file; name a shared library";
  std::array<unsigned char, 64> bytes{};
  const ssize_t got = read_start(file, bytes);
  if (got < 0) {
    const int why = errno;
    if (std::string none = why_no_more(why); !none.empty()) return none;
    return fmt::format("cannot be read ({}); chmod +r it", std::strerror(why));
  }
  if (got == 0) return "is empty; its build did not come to its end: build it again";
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), static_cast<std::size_t>(got));
  if (text.starts_with("!<arch>")) return "is a static library; link one with cc -shared -fPIC";
  if (!text.starts_with(ELFMAG)) {
    return fmt::format(
        "is no shared library: it begins with {}; compile one with cc -shared -fPIC, or write "
        "exec:COMMAND for a program",
        in_quotes(text.substr(0, 20), 20));
  }
  if (text.size() < bytes.size()) return "is cut off within its header; build it again";
  const Header header = header_of(bytes);
  std::array<unsigned char, 64> own{};
  if (read_start("/proc/self/exe", own) == static_cast<ssize_t>(own.size())) {
    if (const Header ours = header_of(own); !header.same_machine(ours)) {
      return fmt::format(
          "is built for {}, and this program runs on {}; compile it for {}, or run attest where it belongs",
          machine_name(header), machine_name(ours), machine_name(ours));
    }
  }
  ElfW(Ehdr) whole{};  // of this machine, so that its layout is ours
  static_assert(sizeof whole <= sizeof bytes);
  std::memcpy(&whole, bytes.data(), sizeof whole);
  const std::uint64_t end = whole.e_shoff + std::uint64_t{whole.e_shentsize} * whole.e_shnum;
  if (const auto size = static_cast<std::uint64_t>(status.st_size); end > size) {
    return fmt::format("is cut off: it has {} bytes, and its header speaks of {}; build it again", size, end);
  }
  if (header.type == ET_REL) return "is an object file; link it into a library with cc -shared";
  if (header.type == ET_EXEC) return "is a program; compile a library with cc -shared -fPIC, or write exec:COMMAND";
  if (header.type != ET_DYN) return "is no shared library (a core file?); compile one with cc -shared -fPIC";
  return {};
}

}  // namespace attest::process
