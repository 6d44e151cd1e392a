// Remembers what servers said of URLs: versions and first bytes for a moment, listings, files fetched ahead.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "headrace/devices/base/file_entry.h"
#include "headrace/devices/base/remote/remote_file.h"

namespace headrace::remote {

// Thread-safe. A URL of a store names another file wherever the environment names another endpoint.
class KnownFiles {
 public:
  using Time = std::chrono::steady_clock::time_point;

  struct Found {
    FileVersion version;
    std::vector<std::byte> head;  // the first bytes; empty: not known any more
  };
  struct Listing {
    std::uint64_t size;
    std::string etag, last_modified;
    Time when = std::chrono::steady_clock::now();
  };
  // Files below a folder, in bytewise order of their URLs.
  struct Below {
    std::shared_ptr<const std::vector<DirectoryEntry>> listing;
    std::span<const DirectoryEntry> files;  // of the listing
  };

  // An answer is valid for a few seconds, and while a Hold lives that is older than it.
  void note(const std::string& url, Found found);
  std::optional<Found> find(const std::string& url);
  void forget(const std::string& url);
  // Forgets the folders that it lies in, too.
  void forget_written(const std::string& url);
  bool still_holds(Time when);
  void hold();
  void release() noexcept;

  Below note_below(const std::string& folder, std::vector<DirectoryEntry> files);
  // Returns them if the folder, or one above it, was listed a moment ago.
  std::optional<Below> find_below(const std::string& folder);

  // Keeps it as long as the process: files of a listing are opened one by one, much later.
  void note_listed(const std::string& url, Listing listing);
  std::optional<Listing> find_listed(const std::string& url);
  void forget_listed(const std::string& url);

  void put_ahead(const std::string& url, std::shared_ptr<RemoteFile> file);
  std::shared_ptr<RemoteFile> take_ahead(const std::string& url);
  void drop_ahead() noexcept;

 private:
  struct Entry {
    Found found;
    Time when = std::chrono::steady_clock::now();
  };
  struct Folder {
    std::shared_ptr<const std::vector<DirectoryEntry>> listing;
    Time when = std::chrono::steady_clock::now();
  };
  using FoundFiles = std::map<std::string, Entry>;

  // By mutex_.
  bool holds(Time when) const;
  void drop_head(Entry& entry);
  void drop(FoundFiles::iterator found);
  void drop_old();

  std::mutex mutex_;
  // By mutex_, and by store and URL.
  FoundFiles found_;
  std::map<std::string, Listing> listed_;
  std::map<std::string, Folder> folders_;
  std::map<std::string, std::shared_ptr<RemoteFile>> ahead_;  // by URL
  std::deque<std::string> order_;                             // in which heads came
  std::uint64_t heads_ = 0;                                   // bytes in found_
  Time dropped_{}, since_{};
  int holders_ = 0;
};

KnownFiles& known_files();

// Returns the files whose URLs begin with the text. REQUIRES: `files` are in order.
std::span<const DirectoryEntry> files_with(const std::string& text, std::span<const DirectoryEntry> files);

}  // namespace headrace::remote
