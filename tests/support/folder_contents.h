// What lies in a folder, to compare before with after.
#pragma once

#include <filesystem>
#include <map>
#include <string>

namespace headrace::test {

using FolderContents = std::map<std::string, std::string>;

// Every name below `folder`: the bytes of files, the targets of links, the types of all else. Folders that may not
// be read are passed over.
FolderContents contents_of(const std::filesystem::path& folder);

// All of a file's bytes; empty where it cannot be read.
std::string text_of(const std::filesystem::path& file);

}  // namespace headrace::test
