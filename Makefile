# `make X` is `./run X`; everything is described in `./run help`.
.PHONY: help demo test check e2e bench soak serve lock
.DEFAULT_GOAL := help
help demo test check e2e bench soak serve lock:
	@./run $@ $(ARGS)
