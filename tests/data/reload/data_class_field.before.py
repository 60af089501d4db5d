from dataclasses import dataclass


@dataclass
class Config:
    rate: float = 0.1


config = Config()
