"""Runs exported scripts one after the other as ``__main__``, on one Ray that is started and ended here."""

from __future__ import annotations

import runpy
import sys

import ray


def main(scripts: list[str]) -> None:
    ray.init(address="local", num_cpus=12, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    end, ray.init, ray.shutdown = ray.shutdown, lambda **options: None, lambda: None
    try:
        for script in scripts:
            print(f"script {script}")
            runpy.run_path(script, run_name="__main__")
    finally:
        end()


if __name__ == "__main__":
    main(sys.argv[1:])
