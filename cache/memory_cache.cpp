#include "headrace/cache/memory_cache.h"
