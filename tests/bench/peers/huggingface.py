"""Hugging Face transformers in this process, in f32 (f16 on a GPU): plain, with its assisted generation, and with its
prompt lookup."""
import os, sys, time
import torch, transformers
from . import END


class HuggingFace:
    def __init__(self, options, context):
        torch.set_num_threads(options.threads)
        transformers.logging.set_verbosity_error()
        transformers.logging.disable_progress_bar()
        self.device, self.dtype = ("cuda", torch.float16) if options.backend == "cuda" else ("cpu", torch.float32)
        sys.path.insert(0, str(options.root / "tests/golden"))
        self.target, self.end = self.load(options.target)
        self.arms = [("transformers", {}), ("transformers lookup", {"prompt_lookup_num_tokens": 10})]
        if options.draft != "none": self.arms.append(("transformers assisted", {"assistant_model": self.load(options.draft)[0]}))
        self.flags = [f"transformers {transformers.__version__}, torch {torch.__version__}, {torch.get_num_threads()} threads, {self.dtype}"]

    def load(self, path):
        """Returns the model, and the id that ends a text."""
        if os.path.isdir(path):
            model = transformers.AutoModelForCausalLM.from_pretrained(path, dtype=self.dtype)
            end = model.generation_config.eos_token_id
        else:
            import gguf
            from widen_gguf import widened

            model, field = widened(path).to(self.dtype), gguf.GGUFReader(path).get_field("tokenizer.ggml.eos_token_id")
            end = field and int(field.contents())
        model.generation_config.eos_token_id = None
        return model.to(self.device).eval(), end

    def run(self, extra, request):
        ids = torch.tensor([request.ids], device=self.device)
        sampling = {"temperature": request.temp, "top_k": request.top_k} if request.temp else {}
        torch.manual_seed(request.seed)
        with torch.inference_mode():
            start = time.perf_counter()
            self.target(ids[:, :-1], logits_to_keep=1, use_cache=True).logits.cpu()  # waits for the result
            prompt = time.perf_counter() - start
            start = time.perf_counter()
            out = self.target.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=request.tokens, do_sample=bool(request.temp),
                                       eos_token_id=self.end if request.until_end else None, pad_token_id=0, **sampling, **extra)
            tokens = out[0, len(request.ids):].tolist()  # waits for the result
            seconds = time.perf_counter() - start
        if request.until_end and tokens[-1] == self.end: tokens[-1] = END
        return {"tokens": tokens, "seconds": seconds, "prompt_seconds": prompt}

    def close(self): pass
