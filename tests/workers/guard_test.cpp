// Who may enter a world: the secret, TLS, the address that worker 0 listens at.
#include "headrace/devices/base/clock.h"
#include "headrace/devices/workers/module/listening.h"
#include "headrace/devices/workers/module/world_secret.h"
#include "headrace/tests/workers/fake_worker.h"
#include "headrace/tests/workers/world_fixture.h"
#include "headrace/tests/workers/world_of_processes.h"

namespace headrace::test {
namespace {

const std::string kSecret = "correct horse battery staple";
constexpr WorkerOptions kBrief{.start_timeout_seconds = 1.5, .call_timeout_seconds = 20};
constexpr WorkerOptions kPatient{.start_timeout_seconds = 60, .call_timeout_seconds = 60};

std::vector<WorkerPlan> plans_with(const std::vector<std::string>& secrets) {
  std::vector<WorkerPlan> plans = plans_of(static_cast<int>(secrets.size()));
  for (std::size_t i = 0; i < secrets.size(); ++i) plans[i].guard.secret = secrets[i];
  return plans;
}

void work(Workers& workers) {
  std::vector<float> values(100, 1.0F);
  workers.all_reduce_sum(values);
  workers.require_equal("variables", "1");
}

TEST(WorldSecret, LetsThoseInWhoKnowIt) {
  EXPECT_THAT(run_workers(plans_with({kSecret, kSecret, kSecret}), kPatient, work), Each(IsEmpty()));
  const ScratchFolder folder;
  std::ofstream(folder.path() / "secret") << kSecret << "\n";
  std::vector<WorkerPlan> plans = plans_with({kSecret, ""});
  plans[1].guard.secret_file = folder.path() / "secret";
  EXPECT_THAT(run_workers(plans, kPatient, work), Each(IsEmpty())) << "a line's end is no part of it";
}

// Those who differ are told at once, and neither's secret is in a message.
TEST(WorldSecret, KeepsOthersOut) {
  struct Row {
    std::string others, said;
  };
  for (const Row& row : {Row{"another secret of this length", "worker 0 has another secret than this worker"},
                         Row{kSecret + "x", "worker 0 has another secret than this worker"},
                         Row{"", "worker 0 asks for the world's secret, and this worker has none"}}) {
    const auto errors = run_workers(plans_with({kSecret, row.others}), kBrief, work);
    EXPECT_THAT(errors, ElementsAre(HasSubstr("there is no worker 1"), HasSubstr(row.said)));
    EXPECT_THAT(errors, Each(AllOf(Not(HasSubstr("horse")), Not(HasSubstr("another secret of")))));
  }
  EXPECT_THAT(run_workers(plans_with({"", kSecret}), kBrief, work)[1],
              HasSubstr("this worker has a secret, and worker 0 has none"));
}

TEST(WorldSecret, OneThatIsTooShortOrMissingIsRefused) {
  EXPECT_THAT(
      run_workers(plans_with({"fifteen letters", "fifteen letters"}), kBrief, work),
      Each(AllOf(HasSubstr("has 15 characters: it must have at least 16"), Not(HasSubstr("fifteen letters")))));
  std::vector<WorkerPlan> plans = plans_of(2);
  for (WorkerPlan& plan : plans) plan.guard.secret_file = "/nowhere/secret";
  EXPECT_THAT(run_workers(plans, kBrief, work), Each(HasSubstr("/nowhere/secret")));
}

// One that reaches the port neither joins a world that begins, nor ends one, nor is told of its values.
TEST(WorldSecret, AStrangerChangesNothing) {
  for (const char* build : {kOwnBuild, "Headrace 9.9"}) {
    const std::vector<WorkerPlan> plans = plans_with({kSecret, kSecret});
    std::vector<workers::ExchangeReply> replies;
    const auto world = run_workers(plans, kPatient, [&](Workers& workers) {
      work(workers);
      if (workers.rank() == 1) {
        FakeWorker stranger(plans[1]);
        stranger.introduce(build);
        replies.push_back(stranger.exchange("gather 3", "mine"));
        replies.push_back(stranger.exchange("goodbye", ""));
      }
      work(workers);
    });
    EXPECT_THAT(world, Each(IsEmpty()));
    ASSERT_EQ(replies.size(), 2U);
    for (const workers::ExchangeReply& reply : replies) EXPECT_EQ(reply.values_size(), 0);
  }
}

TEST(WorldSecret, AStrangerDoesNotTakeAWorkersPlace) {
  const std::vector<WorkerPlan> plans = plans_with({kSecret, kSecret});
  std::vector<std::string> stranger_heard;
  std::thread stranger([&] {
    FakeWorker fake(plans[1]);
    fake.introduce();
    const auto reply = fake.exchange("introduction", "{}");
    stranger_heard = {reply.values().begin(), reply.values().end()};
  });
  EXPECT_THAT(run_workers({plans[0]}, kBrief, work), Each(HasSubstr("there is no worker 1")));
  stranger.join();
  EXPECT_THAT(stranger_heard, IsEmpty());
}

// A recorded message is not heard twice, changed, as another kind, or in another run.
TEST(WorldSecret, NothingCanBeReplayed) {
  Doorkeeper door(kSecret);
  CallersProof caller(kSecret);
  caller.welcome(door.welcome(caller.greeting(1)));
  workers::Beat beat;
  beat.set_rank(1);
  caller.sign("beat", beat);
  Doorkeeper another_run(kSecret);
  EXPECT_FALSE(another_run.admits("beat", beat));
  workers::Beat changed = beat;
  changed.set_failure("it ends");
  EXPECT_FALSE(door.admits("beat", changed));
  changed = beat;
  changed.mutable_proof()->set_number(9);
  EXPECT_FALSE(door.admits("beat", changed));
  EXPECT_FALSE(door.admits("late", beat));
  EXPECT_TRUE(door.admits("beat", beat));
  EXPECT_FALSE(door.admits("beat", beat)) << "heard before";
  workers::Beat next;
  caller.sign("beat", next);
  EXPECT_TRUE(door.admits("beat", next));
  next.clear_proof();
  EXPECT_FALSE(door.admits("beat", next));
}

TEST(WorldSecret, WhoPretendsToBeWorker0IsNotBelieved) {
  CallersProof caller(kSecret);
  const Doorkeeper another("another secret of this length");
  EXPECT_THROW(caller.welcome(another.welcome(caller.greeting(1))), WorkersDiffer);
  const Doorkeeper door(kSecret);
  CallersProof other(kSecret);
  EXPECT_THROW(caller.welcome(door.welcome(other.greeting(1))), WorkersDiffer) << "what another caller was told";
  workers::Welcome without_code = door.welcome(caller.greeting(1));
  without_code.clear_code();
  EXPECT_THROW(caller.welcome(without_code), WorkersDiffer);
  EXPECT_NO_THROW(caller.welcome(door.welcome(caller.greeting(1))));
}

TEST(WorldListening, IsAtLoopbackWhereAllAreThere) {
  EXPECT_TRUE(is_loopback("127.0.0.1") && is_loopback("::1") && !is_loopback("10.0.0.1"));
  for (const char* address : {"10.1.2.3", "172.31.0.1", "192.168.0.1", "127.0.0.1", "169.254.1.1", "100.64.0.1",
                              "::1", "[::1]", "fe80::1%eth0", "fd00::5", "::ffff:10.0.0.1"}) {
    EXPECT_TRUE(is_private(address)) << address;
  }
  for (const char* address : {"11.0.0.1", "172.32.0.1", "192.169.0.1", "8.8.8.8", "100.128.0.1", "2001:db8::1",
                              "::", "::ffff:8.8.8.8", "node-a", ""}) {
    EXPECT_FALSE(is_private(address)) << address;
  }
}

TEST(WorldListening, AnAddressThatIsNotOfThisHostIsRefused) {
  std::vector<WorkerPlan> plans = plans_of(2);
  plans[0].guard.listen = "198.51.100.7";  // of documents
  plans.pop_back();
  EXPECT_THAT(run_workers(plans, kBrief, work), ElementsAre(AllOf(HasSubstr("cannot listen at 198.51.100.7"),
                                                                  HasSubstr("address of its own host"))));
  plans[0].guard.listen = "node-a";
  EXPECT_THAT(run_workers(plans, kBrief, work), ElementsAre(HasSubstr("no address in numbers")));
  plans[0].guard.listen = "127.0.0.1";
  EXPECT_THAT(run_workers(plans, kBrief, work), ElementsAre(HasSubstr("there is no worker 1")));
}

TEST(WorldListening, AnUnknownHostIsSaidAtOnce) {
  std::vector<WorkerPlan> plans = plans_of(2);
  plans[1].coordinator = "no-such-host.invalid:29500";
  const Stopwatch waited;
  EXPECT_THAT(run_workers({plans[1]}, kPatient, work), Each(HasSubstr("no-such-host.invalid:29500")));
  EXPECT_LT(waited.seconds(), 40);
}

// Certificates of an authority of our own, made by the command openssl.
class WorldTls : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string in = "cd " + folder_.path().string() + " && ";
    const auto run = [&](const std::string& line) {
      return std::system((in + line + " >/dev/null 2>&1").c_str()) == 0;
    };
    const std::string key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2";
    std::ofstream(folder_.path() / "san") << "subjectAltName=IP:127.0.0.1,DNS:localhost";
    for (const std::string name : {"ours", "theirs"}) {
      const bool made =
          run("openssl req -x509 " + key + " -keyout " + name + "-ca.key -out " + name +
              "-ca.pem -subj /CN=" + name) &&
          run("openssl req " + key + " -keyout " + name + ".key -out " + name + ".csr -subj /CN=worker") &&
          run("openssl x509 -req -in " + name + ".csr -CA " + name + "-ca.pem -CAkey " + name +
              "-ca.key -CAcreateserial -days 2 -extfile san -out " + name + ".pem");
      if (!made) GTEST_SKIP() << "no openssl command";
    }
  }
  void guard(WorkerPlan& plan, const std::string& name) const {
    plan.guard.tls_authorities = folder_.path() / (name + "-ca.pem");
    plan.guard.tls_certificate = folder_.path() / (name + ".pem");
    plan.guard.tls_key = folder_.path() / (name + ".key");
  }

  ScratchFolder folder_;
};

TEST_F(WorldTls, CarriesAWorldOfOneAuthority) {
  std::vector<WorkerPlan> plans = plans_with({kSecret, kSecret});
  for (WorkerPlan& plan : plans) guard(plan, "ours");
  EXPECT_THAT(run_workers(plans, kPatient, work), Each(IsEmpty()));
}

TEST_F(WorldTls, RefusesACertificateOfAnother) {
  std::vector<WorkerPlan> plans = plans_of(2);
  guard(plans[0], "ours");
  guard(plans[1], "theirs");
  const auto errors = run_workers(plans, kBrief, work);
  EXPECT_THAT(errors[0], HasSubstr("there is no worker 1"));
  EXPECT_THAT(errors[1], HasSubstr("cannot be called by TLS"));
}

TEST_F(WorldTls, RefusesACallerWithoutIt) {
  std::vector<WorkerPlan> plans = plans_of(2);
  guard(plans[0], "ours");
  const auto errors = run_workers(plans, kBrief, work);
  EXPECT_THAT(errors, ElementsAre(HasSubstr("there is no worker 1"), HasSubstr("worker 0 at ")));
}

TEST_F(WorldTls, AFileThatCannotBeReadIsNamed) {
  std::vector<WorkerPlan> plans = plans_of(2);
  for (WorkerPlan& plan : plans) {
    guard(plan, "ours");
    plan.guard.tls_key = "/nowhere/key.pem";
  }
  EXPECT_THAT(run_workers(plans, kBrief, work), Each(HasSubstr("/nowhere/key.pem")));
}

}  // namespace
}  // namespace headrace::test
