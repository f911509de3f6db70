/* A model's files in any format: their configuration, and their tensors by name. */
#ifndef DT_CHECKPOINT_H
#define DT_CHECKPOINT_H

#include "model/config.h"
#include "model/gguf.h"
#include "model/safetensors.h"

typedef struct {
  const char *path;  /* as it was opened */
  char *keys_path;   /* path of the file with the keys */
  cJSON *json;       /* the keys */
  cJSON *generation; /* those of generation_config.json; NULL: there is none */
  st *weights;
  gguf *gguf;   /* instead of weights; NULL: the files are Hugging Face's */
  dt_rope rope; /* for the keys; checkpoint_open sets zeros */
} checkpoint;

/* Opens a folder with config.json and safetensors files, or a GGUF file. checkpoint_open reads the keys only,
 * checkpoint_open_tensors also the list of tensors. Errors name the file, what was found and what was expected. */
dt_status checkpoint_open(const char *path, checkpoint *out, dt_error *err);
dt_status checkpoint_open_tensors(checkpoint *c, dt_error *err);
void checkpoint_close(checkpoint *c); /* views of its tensors are gone afterwards */

keys checkpoint_keys(const checkpoint *c, dt_error *err);

/* The state of a search for tensors. A failure is kept in status and makes later calls do nothing, so that a family's
 * list of tensors reads as a list. */
typedef struct {
  const checkpoint *from;
  const char *prefix;       /* before every name in Hugging Face's files */
  int layer;                /* the number for "%d" in a name */
  const rotation *rotation; /* of a model whose rotation is stretched; NULL: of a head */
  dt_status status;
  dt_error *err;
} finder;

/* Finds a tensor, whose name is `hf` in Hugging Face's files and `gguf` in GGUF files; NULL: such files do not have it.
 * DT_EINPUT: it is missing, has another shape, or a type that is not supported. */
dt_matrix find_matrix(finder *f, int rows, int cols, const char *hf, const char *gguf);
dt_matrix find_vector(finder *f, int n, const char *hf, const char *gguf);
/* A tensor of n vectors, one after another. */
dt_matrix find_vectors(finder *f, int n, int size, const char *hf, const char *gguf);
/* A tensor of n matrices, as one matrix whose rows are ordered [matrix][row]; n * rows fits an int. */
dt_matrix find_matrices(finder *f, int n, int rows, int cols, const char *hf, const char *gguf);
/* find_across: the same for a tensor of transposed matrices, in Hugging Face's files. find_blocks: the same for MXFP4,
 * with blocks and scales in two tensors (see dt_matrix). dt_one_of selects one matrix. */
dt_matrix find_across(finder *f, int n, int rows, int cols, const char *hf);
dt_matrix find_blocks(finder *f, int n, int rows, int cols, const char *blocks, const char *scales);

bool find_is_there(const finder *f, const char *hf, const char *gguf);

/* The numbers of rows and columns (1: a vector) of a tensor of that name; 0: there is none. */
uint64_t find_rows(const finder *f, const char *hf, const char *gguf);
uint64_t find_columns(const finder *f, const char *hf, const char *gguf);

/* Applies the scaling of the rotation that GGUF files store as tensors: the frequency of each pair is divided by a
 * number. These are Llama 3's and, in a model, LongRoPE's. */
void find_stretch(finder *f, int pairs, float *inv_freq);

/* Reads all n numbers of a vector of integers (I64, I32) or bools (BOOL). DT_EINPUT: as above. */
void find_integers(finder *f, int n, const char *hf, const char *gguf, int64_t *out);

#endif
