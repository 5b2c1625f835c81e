"""Four papers beside what this project has: claims, figures and configurations. No part of the engine."""
