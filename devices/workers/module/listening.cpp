#include "headrace/devices/workers/module/listening.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <utility>
#include <vector>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/file.h"

namespace headrace {
namespace {

constexpr const char* kEvery = "[::]";

std::string text_of(const std::string& file) {
  const std::vector<std::byte> bytes = read_whole_file(file);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Networks of one family: the first `bits` of `prefix`.
struct Network {
  std::array<std::uint8_t, 16> prefix = {};
  int bits = 0;
};
constexpr std::array kPrivate4{Network{{10}, 8},       Network{{172, 16}, 12},  Network{{192, 168}, 16},
                               Network{{100, 64}, 10}, Network{{169, 254}, 16}, Network{{127}, 8}};
constexpr std::array kPrivate6{Network{{0xfc}, 7}, Network{{0xfe, 0x80}, 10},
                               Network{{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}, 128}};

bool is_within(const std::uint8_t* address, const Network& network) {
  for (int bit = 0; bit < network.bits; ++bit) {
    const std::size_t byte = static_cast<std::size_t>(bit) / 8;
    if (((address[byte] ^ network.prefix[byte]) & (0x80 >> bit % 8)) != 0) return false;
  }
  return true;
}

template <std::size_t N>
bool is_within_any(const std::uint8_t* address, const std::array<Network, N>& networks) {
  return std::ranges::any_of(networks, [&](const Network& each) { return is_within(address, each); });
}

// Returns an address of this host that is not private; empty if there is none.
std::string public_address_of_host() {
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) return {};
  std::string found;
  for (const ifaddrs* each = first; each != nullptr && found.empty(); each = each->ifa_next) {
    if (each->ifa_addr == nullptr) continue;
    const int family = each->ifa_addr->sa_family;
    std::array<char, INET6_ADDRSTRLEN> text{};
    const void* bytes = nullptr;
    if (family == AF_INET) bytes = &reinterpret_cast<const sockaddr_in*>(each->ifa_addr)->sin_addr;
    if (family == AF_INET6) bytes = &reinterpret_cast<const sockaddr_in6*>(each->ifa_addr)->sin6_addr;
    if (bytes == nullptr || inet_ntop(family, bytes, text.data(), text.size()) == nullptr) continue;
    if (!is_private(text.data())) found = text.data();
  }
  freeifaddrs(first);
  return found;
}

// Returns the host to listen at: "localhost" is 127.0.0.1 and ::1.
std::string host_to_listen_at(const WorkerPlan& plan, const std::string& coordinator) {
  const std::string& told = plan.guard.listen;
  if (!told.empty()) return told.find(':') != std::string::npos && told.front() != '[' ? "[" + told + "]" : told;
  if (coordinator == "localhost" || coordinator == "127.0.0.1" || coordinator == "[::1]") return "localhost";
  return coordinator.starts_with("127.") ? coordinator : kEvery;
}

void warn_of_strangers(const WorkerPlan& plan, const std::string& host, const std::string& port) {
  if (plan.guard.has_secret() || plan.guard.has_tls()) return;
  const bool every = host == kEvery || host == "0.0.0.0";
  const std::string seen = every ? public_address_of_host() : host;
  const bool named = !every && seen.find_first_not_of("0123456789.:abcdefABCDEF[]") != std::string::npos;
  if (seen.empty() || named || is_private(seen)) return;
  fmt::print(
      stderr,
      "headrace: warning: worker 0 listens at {}port {}, and the world has no secret: whoever reaches {} can "
      "join this training or end it\n  hint: set HEADRACE_WORLD_SECRET_FILE on all workers, or have worker 0 "
      "listen at a private address by HEADRACE_WORLD_LISTEN\n",
      every ? "every address, " : host + ", ", port, seen);
  std::fflush(stderr);
}

std::shared_ptr<grpc::ServerCredentials> credentials_of_server(const WorldGuard& guard) {
  if (!guard.has_tls()) return grpc::InsecureServerCredentials();
  grpc::SslServerCredentialsOptions options(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  options.pem_root_certs = text_of(guard.tls_authorities);
  options.pem_key_cert_pairs = {{text_of(guard.tls_key), text_of(guard.tls_certificate)}};
  return grpc::SslServerCredentials(options);
}

std::shared_ptr<grpc::ChannelCredentials> credentials_of_caller(const WorldGuard& guard) {
  if (!guard.has_tls()) return grpc::InsecureChannelCredentials();
  return grpc::SslCredentials({.pem_root_certs = text_of(guard.tls_authorities),
                               .pem_private_key = text_of(guard.tls_key),
                               .pem_cert_chain = text_of(guard.tls_certificate)});
}

std::unique_ptr<grpc::Server> start(const std::string& address, const WorldGuard& guard, grpc::Service& service) {
  grpc::ServerBuilder builder;
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.SetMaxReceiveMessageSize(-1);
  int bound = 0;
  builder.AddListeningPort(address, credentials_of_server(guard), &bound);
  builder.RegisterService(&service);
  std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  return bound == 0 ? nullptr : std::move(server);
}

}  // namespace

bool is_loopback(const std::string& address) { return address == "::1" || address.starts_with("127."); }

bool is_private(const std::string& address) {
  std::string bare = address;
  std::erase_if(bare, [](char c) { return c == '[' || c == ']'; });
  bare = bare.substr(0, bare.find('%'));
  if (bare.starts_with("::ffff:") && bare.find('.') != std::string::npos) bare = bare.substr(7);
  std::array<std::uint8_t, 16> bytes{};
  if (inet_pton(AF_INET, bare.c_str(), bytes.data()) == 1) return is_within_any(bytes.data(), kPrivate4);
  return inet_pton(AF_INET6, bare.c_str(), bytes.data()) == 1 && is_within_any(bytes.data(), kPrivate6);
}

std::unique_ptr<grpc::Server> listen(const WorkerPlan& plan, grpc::Service& service) {
  const std::size_t colon = plan.coordinator.rfind(':');
  const std::string coordinator = plan.coordinator.substr(0, colon), port = plan.coordinator.substr(colon + 1);
  const std::string host = host_to_listen_at(plan, coordinator);
  warn_of_strangers(plan, host, port);
  std::unique_ptr<grpc::Server> server = start(host + ":" + port, plan.guard, service);
  if (server == nullptr && host == "localhost" && plan.guard.listen.empty() && coordinator != host) {
    server = start(plan.coordinator, plan.guard, service);  // on a host that does not know that name
  }
  if (server != nullptr) return server;
  throw ConfigError(
      fmt::format("worker 0 cannot listen at {}, port {}, for the other workers",
                  host == kEvery ? "this host's addresses" : host, port),
      plan.guard.listen.empty()
          ? "end the program that has it, or name another address in HEADRACE_COORDINATOR on all workers"
          : "give worker 0 an address of its own host to listen at, or none");
}

std::shared_ptr<grpc::Channel> call_worker_0(const WorkerPlan& plan) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 500);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  return grpc::CreateCustomChannel(plan.coordinator, credentials_of_caller(plan.guard), arguments);
}

}  // namespace headrace
