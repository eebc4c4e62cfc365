// A management library of two GPUs that has no more than the oldest one had.

#include <stdio.h>
#include <stdlib.h>

int nvmlInit_v2(void) {
	const char *fail = getenv("OLD_INIT");
	return fail ? atoi(fail) : 0;
}
int nvmlShutdown(void) { return 0; }
const char *nvmlErrorString(int code) { return code ? "an error" : "success"; }
int nvmlDeviceGetCount_v2(unsigned *n) { return *n = 2, 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **device) { return *device = (void *)(i + 1ul), 0; }
int nvmlDeviceGetUUID(void *device, char *uuid, unsigned size) {
	snprintf(uuid, size, "GPU-old-%lu", (unsigned long)device - 1);
	return 0;
}
