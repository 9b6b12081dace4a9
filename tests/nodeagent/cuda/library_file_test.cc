// SPDX-License-Identifier: Apache-2.0
// Rule: the library loads into programs whose C library is of 2012, also into those that never asked for libdl.
#include <elf.h>
#include <gmock/gmock.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace grus::cuda {
namespace {

// What the loader reads of a library.
class LibraryFile {
 public:
  explicit LibraryFile(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    bytes_.assign(std::istreambuf_iterator<char>(in), {});
    const auto header = At<Elf64_Ehdr>(0);
    for (std::size_t i = 0; i < header.e_shnum; ++i) {
      sections_.push_back(At<Elf64_Shdr>(header.e_shoff + i * sizeof(Elf64_Shdr)));
    }
  }

  std::vector<std::string> Needed() const {
    std::vector<std::string> names;
    for (const Elf64_Shdr& section : sections_) {
      if (section.sh_type != SHT_DYNAMIC) continue;
      for (std::size_t at = 0; at < section.sh_size; at += sizeof(Elf64_Dyn)) {
        const auto entry = At<Elf64_Dyn>(section.sh_offset + at);
        if (entry.d_tag == DT_NEEDED) names.push_back(Text(section.sh_link, entry.d_un.d_val));
      }
    }
    return names;
  }

  // Of symbols that others have, as GLIBC_2.2.5.
  std::vector<std::string> Versions() const {
    std::vector<std::string> names;
    for (const Elf64_Shdr& section : sections_) {
      if (section.sh_type != SHT_GNU_verneed) continue;
      std::uint64_t at = section.sh_offset;
      for (std::size_t library = 0; library < section.sh_info; ++library) {
        const auto of = At<Elf64_Verneed>(at);
        std::uint64_t version_at = at + of.vn_aux;
        for (std::size_t i = 0; i < of.vn_cnt; ++i) {
          const auto version = At<Elf64_Vernaux>(version_at);
          names.push_back(Text(section.sh_link, version.vna_name));
          version_at += version.vna_next;
        }
        at += of.vn_next;
      }
    }
    return names;
  }

 private:
  template <typename T>
  T At(std::uint64_t offset) const {
    T value = {};
    if (offset + sizeof(T) <= bytes_.size()) std::memcpy(&value, bytes_.data() + offset, sizeof(T));
    return value;
  }
  std::string Text(std::uint32_t section, std::uint64_t offset) const {
    return bytes_.c_str() + sections_.at(section).sh_offset + offset;
  }

  std::string bytes_;
  std::vector<Elf64_Shdr> sections_;
};

LibraryFile Installed() {
  return LibraryFile(std::filesystem::read_symlink("/proc/self/exe").parent_path() / "cuda" / "libgrus-cuda.so");
}

TEST(LibraryFile, NeedsTheTwoLibrariesThatAnOldGlibcHasBesideItself) {
  EXPECT_THAT(Installed().Needed(), ::testing::UnorderedElementsAre("libdl.so.2", "libpthread.so.0", "libc.so.6"));
}

TEST(LibraryFile, AsksForNoFunctionOfAGlibcNewerThan217) {
  const std::vector<std::string> versions = Installed().Versions();
  EXPECT_THAT(versions, ::testing::Not(::testing::IsEmpty()));
  for (const std::string& version : versions) {
    int major = 0, minor = 0;
    ASSERT_GE(std::sscanf(version.c_str(), "GLIBC_%d.%d", &major, &minor), 2) << version;
    EXPECT_TRUE(major == 2 && minor <= 17) << version;
  }
}

}  // namespace
}  // namespace grus::cuda
