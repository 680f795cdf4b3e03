"""Callbacks for trainers of others. Each module needs its trainer's library, and only when imported."""
