/* Fill-in-the-middle: control tokens with which a model was trained to write the text between two others. */
#ifndef DT_INFILL_H
#define DT_INFILL_H

#include <stdint.h>

/* Ids of the tokens. A prompt is prefix, the text before the gap, suffix, the text after it, middle. */
typedef struct {
  int32_t prefix, suffix, middle;
  int32_t pad;        /* fills the room after a text; -1, here and below: there is none */
  int32_t repo, file; /* before the name of a repository and of a file, in front of such a prompt */
} dt_infill;

#endif
