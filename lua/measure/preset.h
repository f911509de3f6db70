/* Reads the file of a preset: {"schema": "dtrun.preset/1", "policy": .., "source": digest of the policy's text,
 * "params": {NAME: VALUE}, ..}. */
#ifndef DTL_PRESET_H
#define DTL_PRESET_H

#include "host.h"

typedef struct {
  char *source;          /* digest of the policy's text that the parameters were found for */
  dtl_setting *settings; /* [n] the parameters, in the order of the file; they and their strings are malloc'd */
  int n;
} preset;

/* Parses a preset, which the caller frees in any case. Returns NULL, or the mistake (static); errno is ENOMEM if memory
 * is out. */
const char *preset_parse(const char *bytes, size_t size, preset *out);
void preset_free(preset *p);

#endif
