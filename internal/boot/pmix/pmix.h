// PMIx's client library, opened at run time. Functions return a status, 0 for success.
#pragma once

#include <stdint.h>

char *gompi_pmix_load(const char *library); // the caller's error, or NULL
const char *gompi_pmix_text(int status);
int gompi_pmix_init(uint32_t *rank);
int gompi_pmix_number(const char *key, int of_job, uint32_t *n);
int gompi_pmix_put(const char *key, char *text);
int gompi_pmix_fence(void);
int gompi_pmix_get(const char *key, uint32_t rank, char **text); // text is the caller's
int gompi_pmix_abort(int code, const char *reason);
int gompi_pmix_finalize(void);
