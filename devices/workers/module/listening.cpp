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
constexpr int kMaxMsToFindHost = 10'000;

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

std::vector<std::string> addresses_of_host() {
  std::vector<std::string> addresses;
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) return addresses;
  for (const ifaddrs* each = first; each != nullptr; each = each->ifa_next) {
    if (each->ifa_addr == nullptr) continue;
    const int family = each->ifa_addr->sa_family;
    std::array<char, INET6_ADDRSTRLEN> text{};
    const void* bytes = nullptr;
    if (family == AF_INET) bytes = &reinterpret_cast<const sockaddr_in*>(each->ifa_addr)->sin_addr;
    if (family == AF_INET6) bytes = &reinterpret_cast<const sockaddr_in6*>(each->ifa_addr)->sin6_addr;
    if (bytes != nullptr && inet_ntop(family, bytes, text.data(), text.size()) != nullptr) {
      addresses.emplace_back(text.data());
    }
  }
  freeifaddrs(first);
  return addresses;
}

bool is_numeric(const std::string& address) {
  std::array<std::uint8_t, 16> bytes{};
  return inet_pton(AF_INET, address.c_str(), bytes.data()) == 1 ||
         inet_pton(AF_INET6, address.substr(0, address.find('%')).c_str(), bytes.data()) == 1;
}

// Returns the plan's address to listen at, as gRPC has it; empty if there is none.
std::string told_host(const WorkerPlan& plan) {
  std::string told = plan.guard.listen;
  if (told.size() > 2 && told.front() == '[' && told.back() == ']') told = told.substr(1, told.size() - 2);
  if (told.empty() || told == "localhost") return told.empty() ? told : "127.0.0.1";
  if (!is_numeric(told)) {
    throw ConfigError(
        fmt::format("worker 0 is to listen at '{}': that is no address in numbers", plan.guard.listen),
        "give an address of worker 0's host without a port, as 10.0.0.5, fd00::5 or 127.0.0.1");
  }
  return told.find(':') == std::string::npos ? told : "[" + told + "]";
}

// Returns the hosts to listen at: both of loopback's if the coordinator is there, since "localhost" is 127.0.0.1
// to one caller and ::1 to another.
std::vector<std::string> hosts_to_listen_at(const WorkerPlan& plan, const std::string& coordinator) {
  if (std::string told = told_host(plan); !told.empty()) return {std::move(told)};
  const std::vector<std::string> own = addresses_of_host();
  const bool has_ipv6 = std::ranges::find(own, "::1") != own.end();
  if (coordinator == "localhost" || coordinator == "127.0.0.1") {
    return has_ipv6 ? std::vector<std::string>{"127.0.0.1", "[::1]"} : std::vector<std::string>{"127.0.0.1"};
  }
  if (coordinator == "[::1]" || coordinator.starts_with("127.")) return {coordinator};
  return {kEvery};
}

void warn_of_strangers(const WorkerPlan& plan, const std::string& host, const std::string& port) {
  if (plan.guard.has_secret() || plan.guard.has_tls()) return;
  const bool every = host == kEvery || host == "0.0.0.0";
  const std::vector<std::string> reached = every ? addresses_of_host() : std::vector<std::string>{host};
  const auto open = std::ranges::find_if_not(reached, is_private);
  if (open == reached.end()) return;
  fmt::print(
      stderr,
      "headrace: warning: worker 0 listens at {} port {}, and the world has no secret: whoever reaches {} can "
      "join this training or end it\n  hint: set HEADRACE_WORLD_SECRET_FILE on all workers, or have worker 0 "
      "listen at a private address by HEADRACE_WORLD_LISTEN\n",
      every ? "every address," : host + ",", port, *open);
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

// Returns null unless it listens at all of them.
std::unique_ptr<grpc::Server> start(const std::vector<std::string>& hosts, const std::string& port,
                                    const WorldGuard& guard, grpc::Service& service) {
  grpc::ServerBuilder builder;
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.SetMaxReceiveMessageSize(-1);
  std::vector<int> bound(hosts.size());
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    builder.AddListeningPort(hosts[i] + ":" + port, credentials_of_server(guard), &bound[i]);
  }
  builder.RegisterService(&service);
  std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  return std::ranges::count(bound, 0) > 0 ? nullptr : std::move(server);
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
  const std::vector<std::string> hosts = hosts_to_listen_at(plan, coordinator);
  warn_of_strangers(plan, hosts.front(), port);
  if (auto server = start(hosts, port, plan.guard, service)) return server;
  throw ConfigError(
      fmt::format("worker 0 cannot listen at {}, port {}, for the other workers",
                  hosts.front() == kEvery ? "this host's addresses" : hosts.front(), port),
      plan.guard.listen.empty()
          ? "end the program that has it, or name another address in HEADRACE_COORDINATOR on all workers"
          : "end the program that has it, or give worker 0 an address of its own host to listen at");
}

std::shared_ptr<grpc::Channel> call_worker_0(const WorkerPlan& plan) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 500);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // shares no waiting with earlier channels
  arguments.SetInt(GRPC_ARG_DNS_ARES_QUERY_TIMEOUT_MS, kMaxMsToFindHost);
  // Worker 0 need not reach itself as others do.
  const std::string told = plan.rank == 0 ? told_host(plan) : "";
  const std::size_t colon = plan.coordinator.rfind(':');
  if (told.empty())
    return grpc::CreateCustomChannel(plan.coordinator, credentials_of_caller(plan.guard), arguments);
  if (plan.guard.has_tls()) arguments.SetSslTargetNameOverride(plan.coordinator.substr(0, colon));
  return grpc::CreateCustomChannel(told + plan.coordinator.substr(colon), credentials_of_caller(plan.guard),
                                   arguments);
}

}  // namespace headrace
