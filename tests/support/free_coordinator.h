// An address at which the workers of a test meet.
#pragma once

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <string>

namespace headrace::test {

// Whether a server could listen on the port now, on all of this host's addresses.
inline bool is_free_port(std::uint16_t port) {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  const bool is_free = ::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
  ::close(socket);
  return is_free;
}

// Another one for each world of this program, and hardly one of another program's: free, and below the ports that
// Linux hands to clients (32768 on), which could take it before worker 0 listens.
inline std::string free_coordinator() {
  static std::atomic<int> used{0};
  for (;;) {
    const int port = 12'000 + (getpid() * 37 + used.fetch_add(1)) % 20'000;
    if (is_free_port(static_cast<std::uint16_t>(port))) return "127.0.0.1:" + std::to_string(port);
  }
}

}  // namespace headrace::test
