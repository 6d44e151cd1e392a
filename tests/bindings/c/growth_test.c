/* A thousand loaders opened and dropped, some with a batch that outlives them: neither memory, nor threads, nor
 * open files grow. oneTBB's workers, at most one a processor and one, start when they are first needed. */
#include <dirent.h>
#include <malloc.h>
#include <unistd.h>

#include "headrace/tests/bindings/c/check.h"

static long entries_of(const char* folder) {
  DIR* all = opendir(folder);
  long count = 0;
  while (readdir(all) != NULL) ++count;
  closedir(all);
  return count;
}

static long resident_kilobytes(void) {
  FILE* file = fopen("/proc/self/statm", "r");
  long total = 0, resident = 0;
  CHECK(fscanf(file, "%ld %ld", &total, &resident) == 2);
  fclose(file);
  return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

static void open_and_drop(const hr_dataset* dataset, const hr_devices* devices, int number) {
  hr_loader* loader = NULL;
  OK(hr_loader_open(dataset, devices, with("{\"seed\": %d, \"threads\": 1}", number), NULL, &loader));
  hr_batch* batch = NULL;
  if (number % 2 == 0) OK(hr_loader_next(loader, 0, &batch));
  if (number % 3 == 0) {
    hr_loader_free(loader);
    hr_batch_free(batch);
  } else {
    hr_batch_free(batch);
    hr_loader_free(loader);
  }
}

/* Threads that have ended may still be on their way out. */
static long settled_threads(long wanted) {
  long threads = entries_of("/proc/self/task");
  for (int i = 0; i < 100 && threads > wanted; ++i) {
    usleep(10000);
    threads = entries_of("/proc/self/task");
  }
  return threads;
}

int main(void) {
  enum { kLoaders = 1000, kWarm = 100 };
  hr_devices* devices = cpus(1);
  hr_dataset* dataset = numbers_in_batches(4096, 1024);
  for (int i = 0; i < kWarm; ++i) open_and_drop(dataset, devices, i);
  const long threads = entries_of("/proc/self/task"), files = entries_of("/proc/self/fd");
  malloc_trim(0);
  const long memory = resident_kilobytes();
  for (int i = 0; i < kLoaders; ++i) open_and_drop(dataset, devices, i);
  malloc_trim(0);
  const long grown = resident_kilobytes() - memory;
  const long allowed = threads + sysconf(_SC_NPROCESSORS_ONLN) + 1, left = settled_threads(allowed);
  printf("threads %ld, then %ld; files %ld, then %ld; memory grew by %ld kB\n", threads, left, files,
         entries_of("/proc/self/fd"), grown);
  CHECK(left <= allowed);
  CHECK(entries_of("/proc/self/fd") == files);
#ifndef HEADRACE_SANITIZED
  CHECK(grown < 8192); /* each had batches of 24 kB */
#endif
  hr_dataset_free(dataset);
  hr_devices_free(devices);
  return end_of_test();
}
