// The files of a kernel by their hashes, and the hash itself against the vectors of its standard.
#include "core/kernels/kernel_files.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <span>
#include <string>

#include "core/support/sha256.h"
#include "core/test/temporary_folder.h"

namespace attest {
namespace {

namespace fs = std::filesystem;

std::string sha256(const std::string& text, std::size_t part = 1000000) {
  Sha256 sha;
  for (std::size_t at = 0; at < text.size(); at += part)
    sha.add(std::as_bytes(std::span(text).subspan(at, std::min(part, text.size() - at))));
  return sha.hex();
}

TEST(Sha256, IsThatOfItsStandard) {
  // FIPS 180-4, and NIST's examples for it.
  EXPECT_EQ(sha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256(std::string(1000000, 'a')), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, IsTheSameInAnyParts) {
  for (std::size_t length = 0; length < 200; ++length) {
    std::string text;
    for (std::size_t i = 0; i < length; ++i) text += static_cast<char>(i * 37 + length);
    const std::string whole = sha256(text);
    for (const std::size_t part : {std::size_t{1}, std::size_t{7}, std::size_t{63}, std::size_t{64}, std::size_t{65}})
      EXPECT_EQ(sha256(text, part), whole) << length << " in parts of " << part;
  }
}

using Words = std::vector<CommandWord>;

TEST(CommandWords, AreThoseThatMayNameFiles) {
  EXPECT_EQ(command_words("python3 mine.py"), (Words{{"python3", true}, {"mine.py"}}));
  EXPECT_EQ(command_words("  A=/x B=1 ./run 'a b' \"c d\" e\\ f"), (Words{{"./run", true}, {"a b"}, {"c d"}, {"e f"}}));
  EXPECT_EQ(command_words("cd there && ./mine; other|last"),
            (Words{{"cd", true}, {"there"}, {"./mine", true}, {"other", true}, {"last", true}}));
  EXPECT_EQ(command_words("mine <in >> out.log 2>&1 --flag=x"), (Words{{"mine", true}, {"--flag=x"}}));
  EXPECT_EQ(command_words(""), Words{});
  EXPECT_EQ(command_words("unfinished 'quote"), (Words{{"unfinished", true}, {"quote"}}));
}

class KernelFiles : public testing::Test {
 protected:
  void SetUp() override {
    before_ = fs::current_path();
    fs::current_path(folder_);
  }
  void TearDown() override { fs::current_path(before_); }
  static void write(const fs::path& file, const std::string& text) { std::ofstream(file) << text; }
  test::TemporaryFolder temporary_;
  fs::path folder_ = temporary_.path(), before_;
};

TEST_F(KernelFiles, OfALibraryAreTheFileItself) {
  write("mine.so", "abc");
  const FileHashes expected{{"./mine.so", {"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"}}};
  EXPECT_EQ(kernel_files("./mine.so"), expected);
  EXPECT_EQ(kernel_files("mine.so").begin()->second, expected.begin()->second);
  write("mine.so", "abd");
  EXPECT_NE(kernel_files("./mine.so"), expected);
  EXPECT_EQ(kernel_files("./absent.so"), FileHashes{});
  EXPECT_EQ(kernel_files("./"), FileHashes{});
}

TEST_F(KernelFiles, OfACommandAreTheProgramAndTheFilesItNames) {
  write("mine.py", "1");
  write("data file", "2");
  fs::create_directory("folder");
  const FileHashes files = kernel_files("exec:A=1 sh mine.py 'data file' folder absent --flag; cat");
  ASSERT_EQ(files.size(), 4U);
  EXPECT_EQ(files.at("mine.py"), std::set{sha256("1")});
  EXPECT_EQ(files.at("data file"), std::set{sha256("2")});
  EXPECT_TRUE(files.contains("sh"));
  EXPECT_TRUE(files.contains("cat"));
  EXPECT_EQ(files.at("sh").begin()->size(), 64U);
}

TEST_F(KernelFiles, AScriptNamedAsAKernelIsMeantAsACommand) {
  EXPECT_EQ(command_meant("flash_torch.py"), "exec:python3 flash_torch.py");  // there or not
  EXPECT_EQ(command_meant("./here/flash.mjs"), "exec:node ./here/flash.mjs");
  EXPECT_EQ(command_meant("python3 flash.py"), "exec:python3 flash.py") << "a command without its exec:";
  EXPECT_EQ(command_meant("no-such-program flash.py"), "exec:python3 FILE");
  write("my flash.py", "1");
  EXPECT_EQ(command_meant("my flash.py"), "exec:python3 FILE") << "a name to quote is not spelt out";
  write("runner", "#!/bin/sh\n");
  EXPECT_EQ(command_meant("runner"), "") << "cannot be executed";
  fs::permissions("runner", fs::perms::owner_all);
  EXPECT_EQ(command_meant("runner"), "exec:./runner");
  EXPECT_EQ(command_meant("./runner"), "exec:./runner");
  for (const char* other : {"builtin:flash", "./libmine.so", "mine.so", "flash", "", "core:mpfr@300", "mine.c"})
    EXPECT_EQ(command_meant(other), "") << other;
}

TEST_F(KernelFiles, OfAnAdapterAreItsScripts) {
  const FileHashes files = kernel_files("pytorch:sdpa");
  EXPECT_TRUE(files.contains("pytorch/pytorch_kernels.py"));
  EXPECT_TRUE(files.contains("python/attest_adapter.py"));
  EXPECT_TRUE(kernel_files("ort:attention").contains("onnxruntime/ort_kernels.js"));
  EXPECT_TRUE(kernel_files("ort:attention").contains("node/attest_adapter.js"));
}

TEST_F(KernelFiles, OfAttestsOwnKernelsAreNone) {
  EXPECT_EQ(kernel_files("builtin:flash"), FileHashes{});
  EXPECT_EQ(kernel_files("core:float"), FileHashes{});
}

}  // namespace
}  // namespace attest
