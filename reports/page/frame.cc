#include "reports/page/frame.h"

#include <fmt/format.h>

#include <cstdint>
#include <random>

#include "reports/page/print.h"
#include "reports/run/embedded_files.h"

namespace attest {

std::string fresh_nonce() {
  std::random_device source;
  std::string nonce;
  for (int i = 0; i < 4; ++i) nonce += fmt::format("{:08x}", static_cast<std::uint32_t>(source()));
  return nonce;
}

std::string framed(const PageFrame& page, const std::string& nonce) {
  // Vega compiles the expressions of its specifications, which are the program's own.
  const std::string_view may_compile = page.plots.script.empty() ? "" : " 'unsafe-eval'";
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
      "script-src 'nonce-{}'{}\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n<title>{}</title>\n<style>{}</style></head>\n"
      "<body><main>\n<header><h1>{}</h1>{}</header>\n{}</main>\n"
      "<script nonce=\"{}\">{}</script>\n{}"
      "</body></html>\n",
      nonce, may_compile, escaped(page.title), embedded_file("page/style.css"), escaped(page.heading), page.first,
      page.body, nonce, embedded_file("page/script.js"), page.plots.script);
}

}  // namespace attest
